"""A preallocated key/value cache and decoding over it."""

import torch


class Cache:
    def __init__(self, batch, heads, max_length, dim, dtype):
        self.k = torch.zeros(batch, heads, max_length, dim, dtype=dtype)
        self.v = torch.zeros(batch, heads, max_length, dim, dtype=dtype)
        self.length = 0

    def update(self, k_new, v_new):
        start, end = self.length, self.length + k_new.shape[2]
        if end > self.k.shape[2]:
            raise ValueError(f"k_new: {end} tokens do not fit into max_length = {self.k.shape[2]}")
        k, v = self.k.clone(), self.v.clone()
        k[:, :, start:end] = k_new
        v[:, :, start:end] = v_new
        self.k, self.v, self.length = k, v, end
        return self.k[:, :, :end], self.v[:, :, :end]

    def reorder(self, index):
        self.k, self.v = self.k[index], self.v[index]

    def reset(self):
        self.k, self.v = torch.zeros_like(self.k), torch.zeros_like(self.v)


def kv_cache(batch, num_kv_heads, max_length, head_dim, *, dtype=torch.float32):
    return Cache(batch, num_kv_heads, max_length, head_dim, dtype)


def cached_attention(q_new, k_new, v_new, cache):
    if q_new.shape[1] != k_new.shape[1]:
        raise NotImplementedError("grouped heads")
    k, v = cache.update(k_new, v_new)
    n, total = q_new.shape[2], k.shape[2]
    rows = []
    for i in range(n):
        end = total - n + i + 1
        p = torch.softmax(q_new[:, :, i : i + 1] @ k[:, :, :end].mT / q_new.shape[-1] ** 0.5, -1)
        rows.append(p @ v[:, :, :end])
    return torch.cat(rows, 2)
