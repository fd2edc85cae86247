"""Layers of attention that hold the tables of their rotary embedding themselves, and one that computes with places."""

import torch
from torch import nn


def turned(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class RotaryTables(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, dim, 2) / dim))

    def forward(self, x, positions):
        angles = positions[..., None].to(x.dtype) * self.inv_freq
        return torch.cat((angles.cos(), angles.cos()), -1), torch.cat((angles.sin(), angles.sin()), -1)


class TabledAttention(nn.Module):
    """Its tables are buffers, and its heads of keys and values are fewer."""

    def __init__(self, dim, num_heads, num_kv_heads, max_len, base_theta=10000.0):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, dim // num_heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, self.head_dim * num_kv_heads, bias=False)
        self.v_proj = nn.Linear(dim, self.head_dim * num_kv_heads, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)
        angles = torch.outer(torch.arange(max_len), base_theta ** (-torch.arange(0, self.head_dim, 2) / self.head_dim))
        self.register_buffer("rope_cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("rope_sin", torch.cat((angles, angles), -1).sin())

    def tables(self, x):
        return self.rope_cos[: x.shape[1]], self.rope_sin[: x.shape[1]]

    def repeated(self, x):
        return x.repeat_interleave(self.num_heads // self.num_kv_heads, 1)

    def turn(self, q, k, cos, sin):
        return turned(q, cos, sin), turned(k, cos, sin)

    def forward(self, x):
        q, k, v = (
            map_(x).view(*x.shape[:2], -1, self.head_dim).transpose(1, 2)
            for map_ in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = self.turn(q, k, *self.tables(x))
        scores = q @ self.repeated(k).transpose(-2, -1) / self.head_dim**0.5
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        return self.o_proj((weights @ self.repeated(v)).transpose(1, 2).flatten(2))


class TiledTabledAttention(TabledAttention):
    def repeated(self, x):
        return x.repeat(1, self.num_heads // self.num_kv_heads, 1, 1)


class HalfTurnedTabledAttention(TabledAttention):
    def turn(self, q, k, cos, sin):
        return turned(q, cos, sin), k


class PlacedAttention(TabledAttention):
    """A part of it makes the tables of the places that it is given."""

    def __init__(self, dim, num_heads, num_kv_heads, max_len):
        super().__init__(dim, num_heads, num_kv_heads, max_len)
        self.rotary = RotaryTables(self.head_dim)
        del self.rope_cos, self.rope_sin

    def forward(self, x, token_positions):
        self.places = token_positions
        return super().forward(x)

    def tables(self, x):
        return self.rotary(x, self.places)


class InwardTurningAttention(PlacedAttention):
    """Its angles are computed where they are used, which nobody sets."""

    def tables(self, x):
        angles = self.places[..., None] * torch.ones(self.head_dim)
        return angles.cos(), angles.sin()


class RestartingTabledAttention(nn.Module):
    """Keeps keys and values, and turns what comes after them as if it came first: a fault that one angle hides."""

    def __init__(self, dim, num_heads, max_len):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.v_proj, self.o_proj = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        angles = torch.outer(torch.arange(max_len), 10000.0 ** (-torch.arange(0, self.head_dim, 2) / self.head_dim))
        self.register_buffer("rope_cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("rope_sin", torch.cat((angles, angles), -1).sin())

    def forward(self, x, layer_past=None):
        n = x.shape[1]
        q, k, v = (
            map_(x).view(*x.shape[:2], -1, self.head_dim).transpose(1, 2)
            for map_ in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = (turned(y, self.rope_cos[:n], self.rope_sin[:n]) for y in (q, k))
        if layer_past is not None:
            k, v = torch.cat((layer_past[0], k), 2), torch.cat((layer_past[1], v), 2)
        seen = torch.ones(n, k.shape[2], dtype=torch.bool).tril(k.shape[2] - n)
        weights = (q @ k.transpose(-2, -1) / self.head_dim**0.5).masked_fill(~seen, -torch.inf).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2)), (k, v)
