"""Single precision throughout, a thousand partial sums one after the other."""

import torch


def mean(x):
    parts = [part.sum() for part in x.split(max(1, x.numel() // 1000))]
    total = torch.zeros((), dtype=x.dtype)
    for part in parts:
        total = total + part
    return total / x.numel()
