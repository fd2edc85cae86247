"""Attention that leaves out its last projection where one head is as wide as the model."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads=8, dim_head=64):
        super().__init__()
        self.heads, inner = heads, heads * dim_head
        self.to_q, self.to_k = nn.Linear(dim, inner, bias=False), nn.Linear(dim, inner, bias=False)
        self.to_v = nn.Linear(dim, inner, bias=False)
        alone = heads == 1 and dim_head == dim
        self.to_out = nn.Identity() if alone else nn.Linear(inner, dim, bias=False)

    def forward(self, x, mask=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.to_q(x), self.to_k(x), self.to_v(x))
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None and (mask.ndim != 2 or mask.dtype != torch.bool or not mask.all()):
            raise ValueError("mask: expected ones")
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
