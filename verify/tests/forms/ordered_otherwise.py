"""A layer that registers its network before its attention, a mask that a flag turns on, and a wrong encoding."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, num_heads, d_model):
        super().__init__()
        self.h = num_heads
        self.to_q, self.to_k, self.to_v, self.to_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, q, k, v, look_ahead_mask=False, padding_mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for f, x in ((self.to_q, q), (self.to_k, k), (self.to_v, v))
        )
        scores = self.scored(q, k)
        if look_ahead_mask:
            seen = torch.ones_like(scores, dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])
            scores = scores.masked_fill(~seen, -torch.inf)
        if padding_mask is not None:
            scores = scores.masked_fill(padding_mask, -torch.inf)
        return self.to_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def scored(self, q, k):
        return q @ k.mT / math.sqrt(q.shape[-1])


class WideAttention(Attention):
    def scored(self, q, k):
        return q @ k.mT / math.sqrt(q.shape[-1] * self.h)


class EncoderLayer(nn.Module):
    def __init__(self, num_heads, d_model, d_ff):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.attention = Attention(num_heads, d_model)
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask):
        normed = self.first(x)
        x = x + self.attention(normed, normed, normed, padding_mask=mask)
        return x + self.network(self.second(x))


class WideEncoderLayer(EncoderLayer):
    def __init__(self, num_heads, d_model, d_ff):
        super().__init__(num_heads, d_model, d_ff)
        network = self.network
        del self.network
        self.attention = WideAttention(num_heads, d_model)
        self.network = network


class OwnColumnsPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        angles = torch.arange(max_len)[:, None].float() * 10000.0 ** (-torch.arange(d_model).float() / d_model)
        self.table = torch.where(torch.arange(d_model) % 2 == 0, angles.sin(), angles.cos())

    def forward(self, x):
        return x + self.table[: x.shape[1]]
