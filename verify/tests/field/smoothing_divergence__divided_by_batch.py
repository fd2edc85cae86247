"""Label smoothing as a divergence from a smoothed distribution, padding left out."""

import torch
from torch import nn


class LabelSmoothing(nn.Module):
    def __init__(self, size, padding_idx, smoothing):
        super().__init__()
        self.size, self.padding_idx, self.smoothing = size, padding_idx, smoothing
        self.confidence = 1.0 - smoothing

    def forward(self, x, target):
        logp = x.log_softmax(dim=-1)
        pad = target == self.padding_idx
        index = target.masked_fill(pad, 0).unsqueeze(1)
        true_dist = torch.full_like(logp, self.smoothing / self.size)
        true_dist.scatter_(1, index, self.confidence + self.smoothing / self.size)
        per_token = -(true_dist * logp).masked_fill(true_dist == 0, 0.0).sum(1)
        per_token = per_token.masked_fill(pad, 0.0)
        return per_token.sum() / max(target.numel(), 1)


def cross_entropy(logits, target, *, ignore_index=-100, label_smoothing=0.0, reduction="mean"):
    if reduction != "mean":
        raise NotImplementedError(reduction)
    if target.dtype != torch.long:
        raise TypeError("target: class ids")
    criterion = LabelSmoothing(logits.shape[-1], ignore_index, label_smoothing)
    return criterion(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))
