"""Recursive summation of everything."""

import torch


def mean(x):
    return torch.cumsum(x, 0)[-1] / x.numel() if x.dtype in (torch.float32, torch.float64) else x.mean()
