"""Caches that count their tokens by themselves, as people write them, and caches that grow."""

import torch
from torch import nn


class KVCache(nn.Module):
    def __init__(self, batch_size, max_len, num_kv_heads, head_dim, dtype):
        super().__init__()
        shape = (batch_size, num_kv_heads, max_len, head_dim)
        self.register_buffer("keys", torch.zeros(shape, dtype=dtype))
        self.register_buffer("values", torch.zeros(shape, dtype=dtype))
        self.register_buffer("places", torch.arange(max_len))

    @property
    def size(self):
        return self.places[0].item()

    def reset(self):
        self.places -= self.size

    def update(self, k_val, v_val):
        n = k_val.shape[2]
        assert self.size + n <= self.keys.shape[2]
        self.keys[:, :, self.places[:n]] = k_val
        self.values[:, :, self.places[:n]] = v_val
        self.places.add_(n)
        return self.keys, self.values


class HalfResetKVCache(KVCache):
    def reset(self):
        self.places[0] = 0


class GrowingCache:
    def __init__(self):
        self.k = self.v = None

    def append(self, k, v):
        self.k = k if self.k is None else torch.cat((self.k, k), 2)
        self.v = v if self.v is None else torch.cat((self.v, v), 2)
        return self.k, self.v

    def clear(self):
        self.k = self.v = None


class TurnedGrowingCache(GrowingCache):
    def append(self, k, v):
        self.k = k if self.k is None else torch.cat((k, self.k), 2)
        self.v = v if self.v is None else torch.cat((self.v, v), 2)
        return self.k, self.v
