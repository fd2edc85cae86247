"""A language model's loss over a large vocabulary, a slice of classes at a time."""

import torch

SLICE = 8


def masked_lm_loss(logits, labels, *, ignore_index=-100):
    scores, labels = logits.flatten(0, -2), labels.flatten()
    keep = labels != ignore_index
    scores, labels = scores[keep], labels[keep]
    if labels.numel() == 0:
        return logits.sum() * 0.0
    top = torch.full_like(scores[:, 0], float("-inf"))
    total = torch.zeros_like(top)
    picked = torch.zeros_like(top)
    for lo in range(0, scores.shape[1], SLICE):
        part = scores[:, lo : lo + SLICE]
        new_top = torch.maximum(top, part.max(1).values.detach())
        shift = new_top.masked_fill(new_top == float("-inf"), 0.0)
        total = total * torch.exp(top - shift) + torch.exp(part - shift[:, None]).sum(1)
        top = new_top
        here = labels < lo + part.shape[1]
        index = (labels - lo).clamp(0, part.shape[1] - 1)
        picked = torch.where(here, part.gather(1, index[:, None])[:, 0], picked)
    return (torch.log(total) + top - picked).mean()
