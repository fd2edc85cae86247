"""A rolling key/value buffer for sliding-window decoding."""

import torch


class RollingBuffer:
    def __init__(self, batch, heads, max_length, dim, dtype, window):
        self.window, self.max_length, self.dtype = window, max_length, dtype
        self.size = max_length if window is None else min(window, max_length)
        self.k = torch.zeros(batch, heads, self.size, dim, dtype=dtype)
        self.v = torch.zeros(batch, heads, self.size, dim, dtype=dtype)
        self.length = 0

    def _ordered(self, x):
        if self.length <= self.size:
            return x[:, :, : self.length]
        start = self.length % self.size
        return torch.cat((x[:, :, start:], x[:, :, :start]), dim=2)

    def update(self, k_new, v_new):
        n = k_new.shape[2]
        if self.length + n > self.max_length:
            raise ValueError("k_new: the buffer is full")
        past = self.size if self.window is None else self.window - 1
        k = torch.cat((self._ordered(self.k)[:, :, -past:] if past else self.k[:, :, :0], k_new), dim=2)
        v = torch.cat((self._ordered(self.v)[:, :, -past:] if past else self.v[:, :, :0], v_new), dim=2)
        slots = torch.arange(self.length, self.length + n)[-self.size :] % self.size
        self.k, self.v = self.k.clone(), self.v.clone()
        self.k[:, :, slots] = k_new[:, :, -self.size :]
        self.v[:, :, slots] = v_new[:, :, -self.size :]
        self.length += n
        return k, v

    def reorder(self, index):
        self.k = self.k.index_select(0, index)

    def reset(self):
        self.length = 0


def kv_cache(batch, num_kv_heads, max_length, head_dim, *, dtype=torch.float32, window=None):
    return RollingBuffer(batch, num_kv_heads, max_length, head_dim, dtype, window)
