"""Recursive summation, the order in which rounding errors grow fastest."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        total = a[:, :1] * b[:1]
        for k in range(1, a.shape[1]):
            total = total + a[:, k : k + 1] * b[k : k + 1]
        return total
