"""Top-k, top-p and greedy choice."""

import torch


def top_k_filter(logits, k):
    order = logits.argsort(dim=-1, descending=True, stable=True)
    drop = torch.ones_like(logits, dtype=torch.bool).scatter(-1, order[..., :k], False)
    return logits.masked_fill(drop, float("-inf"))


def top_p_filter(logits, p):
    values, order = logits.sort(dim=-1, descending=True, stable=True)
    mass = values.softmax(-1)
    before = mass.cumsum(-1) - mass
    drop_sorted = before >= p
    drop_sorted[..., 0] = False
    if p >= 1:
        drop_sorted = torch.zeros_like(drop_sorted)
    drop = torch.zeros_like(drop_sorted).scatter(-1, order, drop_sorted)
    return logits.masked_fill(drop, float("-inf"))


def greedy(logits):
    best = logits == logits.max(dim=-1, keepdim=True).values
    return best.int().argmax(dim=-1)
