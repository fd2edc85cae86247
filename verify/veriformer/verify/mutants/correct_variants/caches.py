"""Other ways to cache, and to attend over a cache."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer import impl
from veriformer.spec.attention.causal_mask import causal_mask
from veriformer.spec.edits import Edit
from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.records import Variant, variant
from veriformer.verify.targets.argument_validation import AttentionOptions, RawOp


def _largest_entry(x: Tensor) -> Tensor:
    """Compute code / 127 · absmax: the cache keeps the largest entry, not the step."""
    absmax = x.abs().amax(-1, keepdim=True)
    codes = (widen(x) / widen(torch.where(absmax == 0, 1, absmax)) * 127).round()
    return (codes / 127 * widen(absmax)).to(x.dtype)


_CODES = "x * LEVELS / xp.where(exactly_equal(a, 0), 1, a)"
_STORED = " * (_absmax(xp, x) / LEVELS)"
_HALF_UP: Edit = ("round(float(q))", "np.floor(float(q) + 0.5)")
_LARGEST_ENTRY: Edit = (_STORED, " / xp.asarray(LEVELS) * _absmax(xp, x)")
_INVERSE_STEP: tuple[Edit, ...] = (
    (_CODES, "x * (LEVELS / xp.where(exactly_equal(a, 0), 1, a))"),
    (_STORED, " / (LEVELS / xp.where(exactly_equal(_absmax(xp, x), 0), 1, _absmax(xp, x)))"),
)
"""Edits of the cache: times 127 / absmax, and back by its reciprocal."""


class _Ring:
    """Slots that are written in turn, position p at p mod capacity, and read in order."""

    def __init__(self, sizes: tuple[int, int, int, int], dtype: torch.dtype, window: int | None, rounds: bool) -> None:
        batch, groups, max_length, head_dim = map(int, sizes)
        self.guard = impl.kv_cache(*sizes, dtype=dtype)
        self.window, self.rounds = window, rounds
        self.capacity = max_length if window is None else max(1, int(window) - 1)
        self.slots = torch.full((2, batch, groups, max(1, self.capacity), head_dim), torch.nan, dtype=dtype)

    @property
    def length(self) -> int:
        return self.guard.length

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        before = self.length
        self.guard.update(k_new, v_new)
        new = torch.stack([_largest_entry(x) if self.rounds else x for x in (k_new, v_new)])
        kept = min(before, self.capacity if self.window is None else self.window - 1)
        old = self.slots[..., torch.arange(before - kept, before) % self.capacity, :]
        rows = torch.cat([old, new], 3)
        last = min(rows.shape[3], self.capacity)
        self.slots[..., torch.arange(self.length - last, self.length) % self.capacity, :] = rows[
            ..., -last:, :
        ].detach()
        return rows[0], rows[1]

    def reorder(self, index: Tensor) -> None:
        self.guard.reorder(index)
        self.slots = self.slots[:, index]

    def reset(self) -> None:
        self.guard.reset()


def _ring(
    batch: int, num_kv_heads: int, max_length: int, head_dim: int, *, dtype: torch.dtype, quantization: Any, window: Any
) -> _Ring:
    return _Ring((batch, num_kv_heads, max_length, head_dim), dtype, window, quantization is not None)


_ATTEND = kernel("attention")


def _whole_matrix(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Any:
    """Call PyTorch's attention under a bool mask."""
    see = torch.as_tensor(causal_mask(q.shape[2], k.shape[2], window=o.window))
    gqa = q.shape[1] != k.shape[1]
    if o.softcap is not None:
        return _ATTEND(q, k, v, o)
    return F.scaled_dot_product_attention(widen(q), widen(k), widen(v), see, scale=o.scale, enable_gqa=gqa).to(q.dtype)


def _query_by_query(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Attend with each query alone over the keys up to it."""
    n, m = q.shape[2], k.shape[2]
    rows = []
    for i in range(n):
        stop = i + 1 + m - n
        start = 0 if o.window is None else max(0, stop - o.window)
        options = AttentionOptions(scale=o.scale, softcap=o.softcap)
        rows.append(_ATTEND(q[:, :, i : i + 1], k[:, :, start:stop], v[:, :, start:stop], options))
    return torch.cat(rows, 2)


def _over_cache(attend: RawOp) -> RawOp:
    """Return attention over what a cache holds after an update."""

    def cached(q: Tensor, k: Tensor, v: Tensor, cache: Any, scale: float | None, softcap: float | None) -> Any:
        options = AttentionOptions(is_causal=True, window=cache.window, scale=scale, softcap=softcap)
        return attend(q, *cache.update(k, v), options)

    return cached


VARIANTS: tuple[Variant, ...] = (
    variant(
        "caches-base",
        "The bases of the mutants of caches",
        {name: kernel(name) for name in ("kv_cache", "cached_attention")},
    ),
    variant(
        "cache-ring",
        "A cache whose slots are written in turn, and attention through PyTorch's kernel",
        kv_cache=_ring,
        cached_attention=_over_cache(_whole_matrix),
    ),
    variant(
        "cache-half-up",
        "Bytes that round halves up, and attention query by query",
        kv_cache=kernel("kv_cache", _HALF_UP, dtype=torch.float64),
        cached_attention=_over_cache(_query_by_query),
    ),
    variant(
        "cache-inverse-step",
        "Bytes by the inverse of the step, and attention in fp64",
        kv_cache=kernel("kv_cache", *_INVERSE_STEP, dtype=torch.float64),
        cached_attention=kernel("cached_attention", dtype=torch.float64),
    ),
    variant(
        "cache-largest-entry",
        "Bytes beside the largest entry of their row",
        kv_cache=kernel("kv_cache", _LARGEST_ENTRY),
    ),
)
