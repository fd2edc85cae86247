"""Rotary embeddings of queries and keys together: behind a past, over some of the features, in either pairing."""

import torch
from torch import nn


class TableStore(dict):
    """Tables that several layers share."""


def halves(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class RotaryEmbedding(nn.Module):
    def __init__(self, config, store: TableStore):
        super().__init__()
        self.dim, self.theta, self.store = config.d_model // config.n_heads, config.rope_theta, store

    def tables(self, n):
        if "cos" not in self.store or len(self.store["cos"]) < n:
            angles = torch.arange(n).float()[:, None] * self.theta ** (-torch.arange(0, self.dim, 2) / self.dim)
            self.store["cos"], self.store["sin"] = (torch.cat((t, t), -1) for t in (angles.cos(), angles.sin()))
        return self.store["cos"][:n], self.store["sin"][:n]

    def places(self, queries, keys):
        return slice(keys - queries, keys)

    def forward(self, q, k):
        cos, sin = self.tables(k.shape[-2])
        at = self.places(q.shape[-2], k.shape[-2])  # fewer queries than keys with a past
        return (q * cos[at] + halves(q) * sin[at]).type_as(q), (k * cos + halves(k) * sin).type_as(k)


class FromTheStartRotaryEmbedding(RotaryEmbedding):
    def places(self, queries, keys):
        return slice(0, queries)


def rotaryembeddings(dim, maxseqlen=2048, base=10000, device=None):
    angles = torch.outer(torch.arange(maxseqlen), 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))
    rope = torch.polar(torch.ones_like(angles), angles)
    return torch.cat((rope, rope), dim=1), rope.real, rope.imag


def turned(x, other, rope, interleave):
    if interleave:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * rope[:, : rope.shape[1] // 2]).flatten(3).type_as(x)
    cos, sin, d = rope.real, rope.imag, rope.shape[1]
    y = x[..., :d] * cos + halves((other if d < x.shape[-1] else x)[..., :d]) * sin
    return torch.cat((y, x[..., d:]), -1).type_as(x)


def apply_rotary_emb(query, key, rope, interleave):
    return turned(query, query, rope, interleave), turned(key, key, rope, interleave)


def mix_up_rotary_emb(query, key, rope, interleave):
    return turned(query, query, rope, interleave), turned(key, query, rope, interleave)


class GrowingRotary(nn.Module):
    """A rotary embedding whose tables grow, called with the positions of each text or without any."""

    def __init__(self, width, *, seq_len=512, base=10000):
        super().__init__()
        self.register_buffer("theta", float(base) ** (-torch.arange(0, width, 2) / width), persistent=False)
        self.make(seq_len)

    def make(self, length):
        angles = torch.outer(torch.arange(length), self.theta)
        self.table = torch.polar(torch.ones_like(angles), angles)

    def longest(self, n):
        return n

    def forward(self, input: torch.Tensor, *, positions: torch.Tensor | None = None):
        """Turn an array.

        Shapes:
            input - (batch_size, num_heads, seq_len, width)
            positions - (batch_size, seq_len)
        """
        batch, _, n, width = input.shape
        longest = self.longest(n if positions is None else int(positions.max()) + 1)
        if len(self.table) < longest:
            self.make(longest)
        table = self.table[:n] if positions is None else self.table[positions.view(-1)].view(batch, 1, n, width // 2)
        pairs = torch.complex(*input.unflatten(-1, (-1, 2)).unbind(-1))
        return torch.view_as_real(pairs * table.to(pairs.dtype)).flatten(-2)


class TardilyGrowingRotary(GrowingRotary):
    """Its table grows by a place too few, and the last place is the one before."""

    def longest(self, n):
        return n - 1

    def make(self, length):
        super().make(length)
        self.table = torch.cat((self.table, self.table[-1:]))
