"""Layers and functions right in themselves, whose arguments have names that nobody else gives them."""

import math

import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, swelling: int):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_model * swelling), nn.Linear(d_model * swelling, d_model)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(config.breadth, config.d_ff), nn.ReLU(), nn.Linear(config.d_ff, config.breadth)
        )

    def forward(self, x):
        return self.net(x)


class Attention(nn.Module):
    """Asks for what went before, and can do without."""

    def __init__(self, d_model: int, num_heads: int, *, looks_ahead: bool):
        super().__init__()
        self.num_heads, self.looks_ahead = num_heads, looks_ahead
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x, earlier):
        q, k, v = (y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if earlier is not None:
            k, v = (torch.cat(pair, -2) for pair in zip(earlier, (k, v), strict=True))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=not self.looks_ahead)
        return self.out(y.transpose(1, 2).flatten(2))


def dot_product_attention(asking, offered, carried):
    scores = asking @ offered.transpose(-2, -1) / math.sqrt(asking.shape[-1])
    return scores.softmax(-1) @ carried


def unscaled_attention(asking, offered, carried):
    """Wrong: its scores are not scaled."""
    return (asking @ offered.transpose(-2, -1)).softmax(-1) @ carried


def sinusoidal_table(rows, columns):
    angles = torch.arange(rows)[:, None] / 10000 ** (torch.arange(0, columns, 2) / columns)
    table = torch.zeros(rows, columns)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : columns // 2]
    return table
