"""A loss with ignored targets, a smoothing constant and per-token output."""

import torch


def cross_entropy(logits, target, *, ignore_index=-100, label_smoothing=0.0, reduction="mean"):
    if target.is_floating_point():
        raise TypeError("class ids only")
    valid = target.ne(ignore_index)
    safe = target.masked_fill(~valid, 0)
    logp = logits - torch.logsumexp(logits, -1, keepdim=True)
    loss = -logp.gather(-1, safe[..., None])[..., 0].masked_fill(~valid, 0.0)
    if label_smoothing > 0:
        loss = (1 - label_smoothing) * loss - label_smoothing * logp.mean(-1)
    if reduction == "none":
        return loss
    total = loss.sum()
    return total if reduction == "sum" else total / valid.sum().clamp(min=1)
