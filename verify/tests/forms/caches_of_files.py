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


class LayeredCache:
    """A cache of all layers that is made longer when it is full, and counts tokens with the last layer."""

    def __init__(self, num_layers, batch_size, num_heads, max_seq_len, head_dim):
        self.held = torch.zeros(num_layers, 2, batch_size, num_heads, max_seq_len, head_dim)
        self.pos = 0

    def reset(self):
        self.pos = 0

    def longer(self, extra):
        return torch.cat((self.held, torch.zeros(*self.held.shape[:4], extra, self.held.shape[5])), 4)

    def insert_kv(self, layer_idx, k, v):
        end = self.pos + k.shape[2]
        if end > self.held.shape[4]:
            self.held = self.longer(end + 7)
        self.held = self.held.to(k.dtype)
        self.held[layer_idx, :, :, :, self.pos : end] = torch.stack((k, v))
        held = self.held[layer_idx, :, :, :, :end]
        if layer_idx == len(self.held) - 1:
            self.pos = end
        return held[0], held[1]


class ResizedLayeredCache(LayeredCache):
    """Cache that is made longer along an inner axis in place, which moves its contents."""

    def longer(self, extra):
        shape = list(self.held.shape)
        shape[4] += extra
        return torch.cat((self.held.flatten(), torch.zeros(extra * self.held[..., 0, :].numel()))).view(shape)


class WrittenCache:
    """A cache of one text that stores what it is given, and gives it when it is asked."""

    def __init__(self, max_length, n_heads, head_dim, dtype=torch.float32):
        self.shape, self.dtype = (1, n_heads, max_length, head_dim), dtype
        self.reset()

    def reset(self):
        self.keys = torch.zeros(self.shape, dtype=self.dtype)
        self.values = torch.zeros(self.shape, dtype=self.dtype)
        self.length = 0

    def place(self, n):
        return slice(self.length, self.length + n)

    def update(self, new_key, new_value):
        n = new_key.shape[2]
        assert self.length + n <= self.shape[2]
        self.keys[:, :, self.length : self.length + n] = new_key
        self.values[:, :, self.place(n)] = new_value
        self.length += n

    def get(self):
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


class WrittenAtTheFrontCache(WrittenCache):
    def place(self, n):
        return slice(0, n)


class CountedOutsideCache:
    """A cache of all layers whose lists are read from outside, where the tokens are counted too."""

    def __init__(self, n_layers, B, n_heads, max_len, head_dim):
        shape = (B, n_heads, max_len, head_dim)
        self.keys = [torch.zeros(shape) for _ in range(n_layers)]
        self.values = [torch.zeros(shape) for _ in range(n_layers)]
        self.current_length = 0

    def written(self, layer):
        return self.keys[layer], self.values[layer]

    def update(self, layer, new_keys, new_values):
        stop = self.current_length + new_keys.shape[2]
        keys, values = self.written(layer)
        keys[:, :, self.current_length : stop] = new_keys
        values[:, :, self.current_length : stop] = new_values


class OneLayerCountedOutsideCache(CountedOutsideCache):
    def written(self, layer):
        return self.keys[0], self.values[layer]


class PlacedCache(nn.Module):
    """Keys and values in front of a buffer, where the caller says; a token behind the end is dropped by the slice."""

    def __init__(self, batch_size, max_seq_len, n_heads, head_dim, dtype=torch.float32):
        super().__init__()
        shape = (batch_size, max_seq_len, n_heads, head_dim)
        self.register_buffer("cache_k", torch.zeros(shape, dtype=dtype))
        self.register_buffer("cache_v", torch.zeros(shape, dtype=dtype))

    def update(self, start_pos, xk, xv):
        end = start_pos + xk.shape[1]
        self.cache_k[:, start_pos:end] = xk
        self.cache_v[:, start_pos:end] = xv
        return self.cache_k[:, :end], self.cache_v[:, :end]
