"""Inverted dropout."""

import torch


def dropout(x, p, *, training=True, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be in [0, 1], got {p}")
    if not training or p == 0:
        return x
    keep = torch.rand(x.shape, generator=None) >= p
    return torch.where(keep, x / (1 - p) if p < 1 else x, torch.zeros_like(x))
