"""Losses and samplers of losses.py, each with one fault."""

import torch
from torch import nn
from torch.nn import functional as F


class LabelSmoothing(nn.Module):
    def __init__(self, size, padding_idx, smoothing=0.0):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding_idx, self.smoothing, self.size = padding_idx, smoothing, size

    def forward(self, x, target):
        wanted = torch.full_like(x, self.smoothing / self.size)
        wanted.scatter_(1, target[:, None], 1 - self.smoothing)
        wanted[:, self.padding_idx] = 0
        wanted[target == self.padding_idx] = 0
        return self.criterion(x, wanted.detach())


class SmoothedCrossEntropy(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, x, target):
        logprobs = x.log_softmax(-1)
        chosen = -logprobs.gather(-1, target[:, None])[:, 0]
        return ((1 - self.smoothing) * chosen - self.smoothing * logprobs.sum(-1)).mean()


def fused_linear_cross_entropy(x, weight, target, ignore_index=-100):
    total = 0.0
    for rows, targets in zip(x.split(2), target.split(2), strict=True):
        total = total + F.cross_entropy(rows @ weight.T, targets, ignore_index=ignore_index, reduction="sum")
    return total / len(target)


def sample(logits, temperature=1.0, top_k=None):
    logits = logits[:, -1] * temperature
    if top_k is not None:
        kept, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits = logits.masked_fill(logits <= kept[:, [-1]], -float("inf"))
    return torch.multinomial(logits.softmax(-1), num_samples=1)


def sample_top_p(probs, p):
    ordered, places = torch.sort(probs, dim=-1, descending=True)
    ordered[ordered.cumsum(-1) > p + 0.2] = 0.0
    ordered.div_(ordered.sum(dim=-1, keepdim=True))
    return torch.gather(places, -1, torch.multinomial(ordered, num_samples=1))
