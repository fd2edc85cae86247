"""Other ways to cache, and to attend over a cache."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer import impl
from veriformer.verify.mutants.records import Variant
from veriformer.verify.mutants.staged_reference.attention import Attention, Dense, Problem, causal
from veriformer.verify.mutants.staged_reference.caches import Cached, Concatenating
from veriformer.verify.mutants.staged_reference.scores import widen
from veriformer.verify.targets.argument_validation import AttentionOptions


def _largest_entry(x: Tensor) -> Tensor:
    """The largest entry is kept, not the step: code / 127 · absmax."""
    absmax = x.abs().amax(-1, keepdim=True)
    codes = (widen(x) / widen(torch.where(absmax == 0, 1, absmax)) * 127).round()
    return (codes / 127 * widen(absmax)).to(x.dtype)


def _half_up(x: Tensor) -> Tensor:
    """⌊x / step + 1/2⌋ in fp64."""
    wide = x.double()
    step = wide.abs().amax(-1, keepdim=True) / 127
    return ((wide / torch.where(step == 0, 1, step) + 0.5).floor() * step).to(x.dtype)


def _inverse_step(x: Tensor) -> Tensor:
    """Times 127 / absmax, and back by its reciprocal; in fp64, where the reciprocal of a tiny entry is finite."""
    wide = x.double()
    absmax = wide.abs().amax(-1, keepdim=True)
    inverse = 127 / torch.where(absmax == 0, 1, absmax)
    return ((wide * inverse).round() / inverse).to(x.dtype)


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


def _whole_matrix(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """PyTorch's attention under a bool mask."""
    see = causal(q.shape[2], k.shape[2], o.window)
    gqa = q.shape[1] != k.shape[1]
    if o.softcap is not None:
        return Attention()(q, k, v, o)
    return F.scaled_dot_product_attention(widen(q), widen(k), widen(v), see, scale=o.scale, enable_gqa=gqa).to(q.dtype)


def _query_by_query(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Each query over the keys up to it, as if the others were not there."""
    n, m = q.shape[2], k.shape[2]
    rows = []
    for i in range(n):
        stop = i + 1 + m - n
        start = 0 if o.window is None else max(0, stop - o.window)
        options = AttentionOptions(scale=o.scale, softcap=o.softcap)
        rows.append(Attention()(q[:, :, i : i + 1], k[:, :, start:stop], v[:, :, start:stop], options))
    return torch.cat(rows, 2)


def _in_fp64(t: Problem) -> Tensor:
    return Dense()(t._replace(q=t.q.double(), k=t.k.double(), v=t.v.double())).to(t.q.dtype)


_CACHE = Concatenating()


VARIANTS: tuple[Variant, ...] = (
    Variant(
        identifier="caches-base",
        title="The bases of the mutants of caches",
        kernels={"kv_cache": _CACHE, "cached_attention": Cached()},
    ),
    Variant(
        identifier="cache-ring",
        title="A cache whose slots are written in turn, and attention through PyTorch's kernel",
        kernels={"kv_cache": _ring, "cached_attention": Cached(attend=_whole_matrix)},
    ),
    Variant(
        identifier="cache-half-up",
        title="Bytes that round halves up, and attention query by query",
        kernels={"kv_cache": Concatenating(stored=_half_up), "cached_attention": Cached(attend=_query_by_query)},
    ),
    Variant(
        identifier="cache-inverse-step",
        title="Bytes by the inverse of the step, and attention in fp64",
        kernels={
            "kv_cache": Concatenating(stored=_inverse_step),
            "cached_attention": Cached(attend=Attention(core=_in_fp64)),
        },
    ),
    Variant(
        identifier="cache-largest-entry",
        title="Bytes beside the largest entry of their row",
        kernels={"kv_cache": Concatenating(stored=_largest_entry)},
    ),
)
