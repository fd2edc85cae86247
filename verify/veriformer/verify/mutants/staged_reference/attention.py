"""Attention as the formula is printed, by stages: heads, scale, cap, bias, visibility, softmax, dropout, values.

A key or value that its query must not see is replaced by zero before it meets a product: 0 · NaN is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from veriformer.verify.mutants.staged_reference.scores import maximum, widen
from veriformer.verify.targets.argument_validation import AttentionOptions

Full = tuple[int, int, int, int]


class Problem(NamedTuple):
    """Attention with repeated heads: q [B, H, n_q, d_k], k and v [B, H, n_k, ·], bias and see [B, H, n_q, n_k].

    dtype is that of the caller's tensors; these here are widened.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    see: Tensor
    scale: float
    options: AttentionOptions
    dtype: torch.dtype


Core = Callable[[Problem], Tensor]
"""Computes the output [B, H, n_q, d_v] of a problem."""


def repeated(x: Tensor, H: int) -> Tensor:
    """Each key/value head in front of the query heads that read it."""
    return x.repeat_interleave(H // x.shape[1], 1)


def causal(n_q: int, n_k: int, window: int | None = None) -> Tensor:
    """Equation 24a: j ≤ i + n_k − n_q, and j > i + n_k − n_q − window."""
    last, j = torch.arange(n_q)[:, None] + n_k - n_q, torch.arange(n_k)
    seen = j <= last
    return seen if window is None else seen & (j > last - window)


def visible(o: AttentionOptions, full: Full) -> Tensor:
    """Return the visible pairs by mask, causality and window together."""
    see = causal(*full[2:], o.window) if o.is_causal else torch.ones(full[2:], dtype=torch.bool)
    return see if o.mask is None else see & o.mask


def given_bias(o: AttentionOptions, full: Full) -> Tensor | None:
    """The bias as it was given."""
    return o.bias


def dot(q: Tensor, k: Tensor, see: Tensor) -> Tensor:
    """⟨q_i, k_j⟩ where i sees j, 0 elsewhere."""
    return (q[..., :, None, :] * torch.where(see[..., None], k[..., None, :, :], 0)).sum(-1)


def weighted(p: Tensor, v: Tensor, see: Tensor) -> Tensor:
    """Σ_j p_ij v_j over the j that i sees."""
    return (p[..., None] * torch.where(see[..., None], v[..., None, :, :], 0)).sum(-2)


def cap(s: Tensor, c: float | None) -> Tensor:
    """c tanh(s / c)."""
    return s if c is None else c * torch.tanh(s / c)


def softmax(s: Tensor, see: Tensor) -> Tensor:
    """Over the visible keys; a row without any is zero."""
    if s.shape[-1] == 0:
        return s
    s = s.masked_fill(~see, -math.inf)
    e = (s - maximum(s)).exp()
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)


def draw_keep(shape: torch.Size | Full, o: AttentionOptions) -> Tensor:
    """Draw the mask of weights that dropout keeps, each independently."""
    return torch.rand(shape, generator=o.generator, dtype=torch.float64) >= o.dropout_p


def drop(p: Tensor, o: AttentionOptions) -> Tensor:
    """Inverted dropout of the weights."""
    return dropped(p, draw_keep(p.shape, o), o.dropout_p)


def dropped(p: Tensor, keep: Tensor, rate: float) -> Tensor:
    """p / (1 − rate) where kept, 0 elsewhere."""
    return p.masked_fill(~keep, 0) / (1 - rate if rate < 1 else 1)


@dataclass(frozen=True)
class Dense:
    """The printed formula, all weights at once; gradients by autograd."""

    cap: Callable[[Tensor, float | None], Tensor] = cap
    softmax: Callable[[Tensor, Tensor], Tensor] = softmax
    drop: Callable[[Tensor, AttentionOptions], Tensor] = drop
    weighted: Callable[[Tensor, Tensor, Tensor], Tensor] = weighted

    def __call__(self, t: Problem) -> Tensor:
        """Return the output of a problem."""
        s = self.cap(dot(t.q, t.k, t.see) * t.scale, t.options.softcap)
        p = self.softmax(s if t.bias is None else s + t.bias, t.see)
        if t.options.training and t.options.dropout_p:
            p = self.drop(p, t.options)
        return self.weighted(p, t.v, t.see)


@dataclass(frozen=True)
class Attention:
    """The stages in front of the core, which all cores share."""

    heads: Callable[[Tensor, int], Tensor] = repeated
    visible: Callable[[AttentionOptions, Full], Tensor] = visible
    bias: Callable[[AttentionOptions, Full], Tensor | None] = given_bias
    core: Core = field(default_factory=Dense)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
        """Attention under the contract."""
        B, H, n_q, _ = q.shape
        full = (B, H, n_q, k.shape[2])
        see, bias = self.visible(o, full).expand(full), self.bias(o, full)
        q_, k_, v_ = widen(q), self.heads(widen(k), H), self.heads(widen(v), H)
        if bias is not None:
            bias = bias.to(q_.dtype).expand(full)
            dark = bias == -math.inf
            see, bias = see & ~dark, bias.masked_fill(dark, 0)
        scale = 1 / math.sqrt(q.shape[-1]) if o.scale is None else o.scale
        return self.core(Problem(q_, k_, v_, bias, see, scale, o, q.dtype)).to(q.dtype)
