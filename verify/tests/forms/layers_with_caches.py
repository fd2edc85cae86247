"""Layers of attention that keep keys and values of earlier calls, in the ways in which people write that."""

import math

import torch
from torch import nn


class Projected(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def split(self, x):
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)

    def joined(self, scores, v):
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class FlaggedAttention(Projected):
    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.k_cache = self.v_cache = None
        self.place = 0

    def advanced(self, n):
        return self.place + n

    def forward(self, x, use_cache=False):
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        n = x.shape[1]
        rows = torch.arange(n)
        if use_cache:
            rows = rows + self.place
            if self.k_cache is not None:
                k, v = torch.cat((self.k_cache, k), 2), torch.cat((self.v_cache, v), 2)
            self.k_cache, self.v_cache, self.place = k, v, self.advanced(n)
        hidden = rows[:, None] < torch.arange(k.shape[2])[None]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return self.joined(scores.masked_fill(hidden, -torch.inf), v)


class ForgetfulFlaggedAttention(FlaggedAttention):
    def advanced(self, n):
        return n


class PastAttention(Projected):
    def rows(self, n, m):
        return slice(m - n, m)

    def forward(self, x, layer_past=None):
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        if layer_past is not None:
            k, v = torch.cat((layer_past[0], k), 2), torch.cat((layer_past[1], v), 2)
        m = k.shape[2]
        seen = torch.ones(m, m, dtype=torch.bool).tril()[self.rows(x.shape[1], m)]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return self.joined(scores.masked_fill(~seen, -torch.inf), v), (k, v)


class TopPastAttention(PastAttention):
    def rows(self, n, m):
        return slice(0, n)


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class PlacedAttention(Projected):
    def __init__(self, dim, num_heads, max_seq_len=64, max_batch_size=8):
        super().__init__(dim, num_heads)
        self.keys = torch.zeros(max_batch_size, num_heads, max_seq_len, dim // num_heads)
        self.values = torch.zeros(max_batch_size, num_heads, max_seq_len, dim // num_heads)

    def kept(self, k, turned):
        return turned

    def forward(self, x, cos, sin, mask=None, start_pos=None):
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        plain, b, n = k, x.shape[0], x.shape[1]
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        if start_pos is not None:
            self.keys, self.values = self.keys.to(x), self.values.to(x)
            self.keys[:b, :, start_pos : start_pos + n] = self.kept(plain, k)
            self.values[:b, :, start_pos : start_pos + n] = v
            k, v = self.keys[:b, :, : start_pos + n], self.values[:b, :, : start_pos + n]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return self.joined(scores if mask is None else scores + mask, v)


class UnturnedPlacedAttention(PlacedAttention):
    def kept(self, k, turned):
        return k


class AlwaysPlacedAttention(PlacedAttention):
    def forward(self, x, start_pos, cos, sin, mask=None):
        return super().forward(x, cos, sin, mask, start_pos)


class UnturnedAlwaysPlacedAttention(AlwaysPlacedAttention):
    def kept(self, k, turned):
        return k


class FilledAttention(Projected):
    def forward(self, q, k, v, cache=None):
        q = self.split(self.wq(q))
        if cache is not None and "k" in cache:
            k, v = cache["k"], cache["v"]
        else:
            k, v = self.split(self.wk(k)), self.split(self.wv(v))
            if cache is not None:
                cache["k"], cache["v"] = self.filled(k, v)
        return self.joined(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), v)

    def filled(self, k, v):
        return k, v


class MixedUpFilledAttention(FilledAttention):
    def filled(self, k, v):
        return k, k


class BareCausalAttention(Projected):
    def forward(self, x, mask=None):
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.wo(y.transpose(1, 2).flatten(2))


class LayersCache:
    """Keys and values of all layers; the model adds to seq_len after the last layer."""

    def __init__(self, num_layers, batch_size, num_heads, max_seq_len, head_dim):
        self.keys, self.values = torch.zeros(2, num_layers, batch_size, num_heads, max_seq_len, head_dim)
        self.seq_len = 0

    def update(self, layer_idx, k, v):
        stop = self.seq_len + k.shape[2]
        self.keys[layer_idx, :, :, self.seq_len : stop] = k
        self.values[layer_idx, :, :, self.seq_len : stop] = v
        return self.keys[layer_idx, :, :, :stop], self.values[layer_idx, :, :, :stop]


class GivenCacheAttention(Projected):
    def __init__(self, dim, num_heads, is_causal=True, layer_idx=None):
        super().__init__(dim, num_heads)
        self.is_causal, self.layer_idx = is_causal, layer_idx

    def first_row(self, n, m):
        return m - n

    def forward(self, x, kv_cache=None):
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        if kv_cache is not None and self.layer_idx is not None:
            k, v = kv_cache.update(self.layer_idx, k, v)
        scores, n, m = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), x.shape[1], k.shape[2]
        if self.is_causal:
            hidden = torch.ones(n, m, dtype=torch.bool).triu(1 + self.first_row(n, m))
            scores = scores.masked_fill(hidden, -torch.inf)
        return self.joined(scores, v)


class TopGivenCacheAttention(GivenCacheAttention):
    def first_row(self, n, m):
        return 0


class GivenCacheBlock(nn.Module):
    def __init__(self, dim, num_heads, layer_idx=0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = GivenCacheAttention(dim, num_heads, layer_idx=layer_idx)
        self.network = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, kv_cache=None):
        x = x + self.attention(self.norm1(x), kv_cache)
        return x + self.network(self.norm2(x))
