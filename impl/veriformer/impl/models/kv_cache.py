"""The keys and values that a model keeps between two calls: one cache for each layer."""

from collections.abc import Iterable

import torch
from torch import Tensor

from veriformer.impl.cache.caches import Cache, DynamicCache
from veriformer.impl.cache.kv_cache import kv_cache
from veriformer.impl.models.config import ModelConfig

UNBOUNDED = 2**62  # a window takes no more memory for it


class KVCache:
    """The caches of all layers of a decoder and, in an encoder–decoder, the keys and values of what was encoded.

    A call of the model changes it: to branch, copy it first.
    """

    def __init__(self, layers: Iterable[Cache]) -> None:
        self.layers = tuple(layers)
        self.context: list[tuple[Tensor, Tensor]] = []
        self.context_mask: Tensor | None = None

    @property
    def length(self) -> int:
        """Number of tokens seen so far."""
        return self.layers[0].length

    def visible(self, n_new: int) -> int:
        """Return how many keys the caches will show to `n_new` more tokens."""
        window = self.layers[0].window
        return self.length + n_new if window is None else min(self.length, window - 1) + n_new

    def reorder(self, index: Tensor) -> None:
        """Let batch element `b` go on with the text of element `index[b]`, as beams do."""
        for cache in self.layers:
            cache.reorder(index)
        self.context = [(k[index], v[index]) for k, v in self.context]
        self.context_mask = None if self.context_mask is None else self.context_mask[index]

    def rewind(self, length: int) -> None:
        """Forget the latest tokens and keep the first `length`; a window does not allow that."""
        for cache in self.layers:
            cache.rewind(length)

    def reset(self) -> None:
        """Forget all tokens; the memory of the caches is kept."""
        for cache in self.layers:
            cache.reset()
        self.context, self.context_mask = [], None


def make_kv_cache(
    config: ModelConfig,
    num_layers: int,
    dtype: torch.dtype,
    batch: int,
    max_length: int | None,
    quantization: str | None,
) -> KVCache:
    """Make empty caches for `num_layers` layers: of `max_length` tokens, taken at once, or growing."""
    G, d_k, window = config.kv_heads, config.d_k, config.window

    def cache() -> Cache:
        if max_length is None and window is None:
            return DynamicCache(batch, G, d_k, dtype=dtype, quantization=quantization)
        room = UNBOUNDED if max_length is None else max_length
        return kv_cache(batch, G, room, d_k, dtype=dtype, quantization=quantization, window=window)

    return KVCache(cache() for _ in range(num_layers))
