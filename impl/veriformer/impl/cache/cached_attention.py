"""Attention of new tokens over those in a cache."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.arguments import check_arguments
from veriformer.impl.attention_backends.sdpa import attention
from veriformer.impl.cache.caches import Cache


def cached_attention(
    q_new: Tensor,
    k_new: Tensor,
    v_new: Tensor,
    cache: Cache,
    *,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    r"""Append new keys and values to the cache, and let the new queries attend to what it then holds.

    $$O = \mathrm{softmax}\left(\frac{q_\mathrm{new} K^\top}{\sqrt{d_k}}\right) V, \quad
      K = [K_\mathrm{cache};\, k_\mathrm{new}], \quad V = [V_\mathrm{cache};\, v_\mathrm{new}]$$

    Causal: the last query sees the last key, and with the cache's window `w` only its `w` latest. However a text is cut
    into calls, the rows are those of causal attention over all of it. `scale` and `softcap` are those of `attention`.

    Shapes: `q_new [B, H, n, d]`, `k_new` and `v_new [B, G, n, d]` → `[B, H, n, d]`, where `G` divides `H`. Dtypes:
    float64, float32, bfloat16, float16, that of the cache. Gradients reach `q_new`, and `k_new` and `v_new` where the
    cache does not round; none go through the cache to earlier calls. Raises as `attention` and `Cache.update` do, and
    then leaves the cache as it was. Equation 44.
    """
    _check(q_new, k_new, v_new, cache)
    check_arguments(q_new, k_new, v_new, scale=scale, softcap=softcap)  # before the cache has changed
    k, v = cache.update(k_new, v_new)
    if torch.is_grad_enabled() and q_new.requires_grad:
        k, v = _kept(k, k_new), _kept(v, v_new)
    return attention(q_new, k, v, is_causal=True, window=cache.window, scale=scale, softcap=softcap)


def _check(q_new: Tensor, k_new: Tensor, v_new: Tensor, cache: Cache) -> None:
    if not isinstance(cache, Cache):
        checks.raise_for("cache", "what kv_cache returns", type(cache).__name__, "make one with kv_cache", TypeError)
    cache.check(k_new, v_new)
    if checks.tensor("q_new", q_new).ndim != 4:
        checks.raise_for("q_new", "rank 4, [batch, heads, n, head_dim]", f"shape {tuple(q_new.shape)}", "reshape it")
    checks.same_dtype_and_device({"k_new": k_new, "q_new": q_new})
    (B, H, n, d), (B_k, G, n_k, d_k) = q_new.shape, k_new.shape
    if (B, n, d) != (B_k, n_k, d_k) or H % G:
        expected = f"[{B_k}, a multiple of {G}, {n_k}, {d_k}], to fit k_new"
        checks.raise_for("q_new", expected, f"shape {tuple(q_new.shape)}", "give each new token its queries")


def _kept(shown: Tensor, new: Tensor) -> Tensor:
    """Return a copy of what is only valid until the next call, for the backward pass."""
    return shown if new.requires_grad else shown.clone()
