"""Attention by the function of a library that has one, else by hand: right in one class, wrong in the other."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.n_head, self.fused = n_head, hasattr(torch.nn.functional, "scaled_dot_product_attention")
        if not self.fused:
            self.register_buffer("seen", torch.ones(block_size, block_size).tril())

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for y in self.c_attn(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True) if self.fused else self.by_hand(q, k, v)
        return self.c_proj(y.transpose(1, 2).flatten(2))

    def by_hand(self, q, k, v):
        scores = q @ k.mT / math.sqrt(self.width(q))
        seen = self.seen[: scores.shape[-2], : scores.shape[-1]]
        return scores.masked_fill(seen == 0, -math.inf).softmax(-1) @ v

    def width(self, q):
        return q.shape[-1]


class FaultyCausalAttention(CausalAttention):
    """By hand its scores are divided by the root of the width of the model."""

    def width(self, q):
        return q.shape[1] * q.shape[-1]
