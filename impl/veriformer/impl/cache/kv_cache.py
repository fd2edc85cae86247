"""The cache that the contract asks for, chosen by its options."""

import torch

from veriformer.impl.cache.caches import Cache, SlidingWindowCache, StaticCache


def kv_cache(
    batch: int,
    num_kv_heads: int,
    max_length: int,
    head_dim: int,
    *,
    dtype: torch.dtype = torch.float32,
    quantization: str | None = None,
    window: int | None = None,
) -> Cache:
    r"""Make an empty cache of keys and values for `max_length` tokens.

    $$K_\mathrm{cache} \gets \mathrm{concat}(K_\mathrm{cache}, k_\mathrm{new}), \quad
      V_\mathrm{cache} \gets \mathrm{concat}(V_\mathrm{cache}, v_\mathrm{new})$$

    `update(k_new, v_new)` appends rows `[batch, num_kv_heads, n, head_dim]` and returns the keys and values stored,
    oldest first, valid until the next call; `length` is the position of the next token; `reorder(index)` lets batch
    elements go on from others, as beams do; `reset()` forgets all. With `window=w` what is returned are the latest
    rows, at most `w − 1 + n` of them, as chunks of a prompt need, and memory is that of two windows.
    `quantization="int8"` stores a byte per entry and a scale per batch element, head and token: what comes back is
    within absmax/254 of its row, plus rounding.

    Buffers are taken on the device of the first update. Raises `ValueError` for sizes below 1 (`max_length` below 0),
    other quantizations and `window < 1`, `TypeError` for other dtypes than float64, float32, bfloat16 and float16;
    `update` and `reorder` raise for what does not fit, and then change nothing. Equations 42 and 43.
    """
    if window is None:
        return StaticCache(batch, num_kv_heads, max_length, head_dim, dtype=dtype, quantization=quantization)
    return SlidingWindowCache(
        batch, num_kv_heads, max_length, head_dim, window=window, dtype=dtype, quantization=quantization
    )
