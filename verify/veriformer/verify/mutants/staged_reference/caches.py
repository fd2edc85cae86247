"""A cache that puts tensors one after the other, and attention over it, by stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from veriformer import impl
from veriformer.impl.cache.caches import Cache
from veriformer.verify.mutants.staged_reference.attention import Attention
from veriformer.verify.mutants.staged_reference.scores import widen
from veriformer.verify.targets.argument_validation import AttentionOptions


def round_trip(x: Tensor) -> Tensor:
    """Codes from −127 to 127 times the step of each row."""
    wide = widen(x)
    step = wide.abs().amax(-1, keepdim=True) / 127
    return ((wide / torch.where(step == 0, 1, step)).round() * step).to(x.dtype)


def kept(rows: Tensor, window: int | None) -> Tensor:
    """Return the rows that an update adds to: with a window the latest w − 1."""
    return rows if window is None else rows[:, :, max(0, rows.shape[2] - (window - 1)) :]


@dataclass(frozen=True)
class Concatenating:
    """Makes caches of this kind."""

    stored: Callable[[Tensor], Tensor] = round_trip

    def __call__(
        self,
        batch: int,
        num_kv_heads: int,
        max_length: int,
        head_dim: int,
        *,
        dtype: torch.dtype,
        quantization: str | None,
        window: int | None,
    ) -> Concatenated:
        """Return the contract's operation."""
        guard = impl.kv_cache(batch, num_kv_heads, max_length, head_dim, dtype=dtype)
        nothing = torch.empty(int(batch), int(num_kv_heads), 0, int(head_dim), dtype=dtype)
        return Concatenated(self, guard, quantization, None if window is None else int(window), nothing, nothing)


@dataclass
class Concatenated:
    """Keys and values, and a cache of our own for what it refuses."""

    stages: Concatenating
    guard: Cache
    quantization: str | None
    window: int | None
    k: Tensor
    v: Tensor

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return self.guard.length

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append."""
        self.guard.update(k_new, v_new)
        stored = (lambda x: x) if self.quantization is None else self.stages.stored
        k, v = (torch.cat([kept(old, self.window), stored(new)], 2) for old, new in ((self.k, k_new), (self.v, v_new)))
        self.k, self.v = k.detach(), v.detach()
        return k, v

    def reorder(self, index: Tensor) -> None:
        """Go on from other elements."""
        self.guard.reorder(index)
        self.k, self.v = self.k[index], self.v[index]

    def reset(self) -> None:
        """Forget."""
        self.guard.reset()
        self.k, self.v = self.k[:, :, :0], self.v[:, :, :0]


@dataclass(frozen=True)
class Cached:
    """Append, and attend."""

    attend: Callable[[Tensor, Tensor, Tensor, AttentionOptions], Tensor] = field(default_factory=Attention)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, cache: Concatenated, scale: float | None, softcap: float | None
    ) -> Tensor:
        """Return the contract's operation."""
        keys, values = cache.update(k, v)
        options = AttentionOptions(is_causal=True, window=cache.window, scale=scale, softcap=softcap)
        return self.attend(q, keys, values, options)
