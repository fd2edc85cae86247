"""Attention by blocks of keys: the online softmax forward, recomputation from the saved log-sum-exp backward.

Each method of ``Flash`` is a stage that a mutant may override. After FlashAttention (Dao et al., 2022).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from veriformer.spec.attention.causal_mask import visible
from veriformer.spec.edits import Edit, edited
from veriformer.verify.formulas.base import FormulaKernel, widen
from veriformer.verify.targets.argument_validation import AttentionOptions

Block = slice


class Problem(NamedTuple):
    """Attention with repeated heads: q [B, H, n_q, d_k], k and v [B, H, n_k, ·], bias and see [B, H, n_q, n_k].

    All are widened. What a query must not see is not multiplied with: 0 · NaN is NaN.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    see: Tensor
    scale: float
    options: AttentionOptions


def dot(q: Tensor, k: Tensor, see: Tensor) -> Tensor:
    """Compute ⟨q_i, k_j⟩ where i sees j, 0 elsewhere."""
    return (q[..., :, None, :] * torch.where(see[..., None], k[..., None, :, :], 0)).sum(-1)


def weighted(p: Tensor, v: Tensor, see: Tensor) -> Tensor:
    """Compute Σ_j p_ij v_j over the j that i sees."""
    return (p[..., None] * torch.where(see[..., None], v[..., None, :, :], 0)).sum(-2)


def dropped(p: Tensor, keep: Tensor, rate: float) -> Tensor:
    """Compute p / (1 − rate) where kept, 0 elsewhere."""
    return p.masked_fill(~keep, 0) / (1 - rate if rate < 1 else 1)


class State(NamedTuple):
    """After some blocks: the largest score m, l = Σ e^{s − m}, o = Σ e^{s − m} v; m and l are [B, H, n_q, 1]."""

    m: Tensor
    l: Tensor
    o: Tensor


class Rows(NamedTuple):
    """Row statistics for the backward pass: largest score, log-sum-exp, and Σ dO ⊙ O."""

    m: Tensor
    lse: Tensor
    delta: Tensor


class Scored(NamedTuple):
    """Block of scores: scores (−∞ where hidden), derivative of the cap, weights kept by dropout, visible pairs."""

    s: Tensor
    slope: Tensor
    keep: Tensor | None
    see: Tensor


def _problem(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions, sees: Callable[..., Any]) -> Problem:
    full = (*q.shape[:3], k.shape[2])
    mask = None if o.mask is None else o.mask.numpy()
    see = torch.as_tensor(sees(*full[2:], mask=mask, is_causal=o.is_causal, window=o.window)).expand(full)
    q_, k_, v_ = widen(q), *(widen(x).repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    bias = o.bias
    if bias is not None:
        bias = bias.to(q_.dtype).expand(full)
        dark = bias == -math.inf
        see, bias = see & ~dark, bias.masked_fill(dark, 0)
    return Problem(q_, k_, v_, bias, see, 1 / math.sqrt(q.shape[-1]) if o.scale is None else o.scale, o)


def finite(m: Tensor) -> Tensor:
    """Replace −∞ in m by 0, so that −∞ − m stays −∞."""
    return m.masked_fill(m == -math.inf, 0)


class Flash:
    """A core that holds one block of the weights at a time. edits: of the formula of who sees whom."""

    block = 3
    edits: tuple[Edit, ...] = ()

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
        """Compute attention under the contract."""
        t = _problem(q, k, v, o, edited(visible, self.edits))
        keep = None
        if o.training and o.dropout_p:
            keep = torch.rand(t.see.shape, generator=o.generator, dtype=torch.float64) >= o.dropout_p
        out: Tensor = _Function.apply(t.q, t.k, t.v, t.bias, t, keep, self)  # type: ignore[no-untyped-call]
        return out.to(q.dtype)

    def joined(self, other: FormulaKernel) -> Flash | None:
        """Return the core with the edits of another kernel; None where they are of more than who sees whom."""
        both = copy.copy(self)
        both.edits = other.edits
        try:
            edited(visible, both.edits)
        except ValueError:
            return None
        return both

    def forward(self, t: Problem, keep: Tensor | None, blocks: list[Block]) -> tuple[Tensor, Tensor, Tensor]:
        """Return (output, m, log-sum-exp) over these blocks of keys."""
        rows = t.q[..., :1]
        state = State(
            torch.full_like(rows, -math.inf), torch.zeros_like(rows), t.q.new_zeros((*t.q.shape[:3], t.v.shape[3]))
        )
        for j in blocks:
            b = self.scored(t, keep, j)
            state = self.absorb(state, b.s, self._spread(t, b, j))
        empty = state.l == 0
        o = state.o / state.l.masked_fill(empty, 1)
        return o, state.m, (finite(state.m) + state.l.log())

    def scored(self, t: Problem, keep: Tensor | None, j: Block) -> Scored:
        """Return the scores of one block, capped, biased and masked."""
        see, c = t.see[..., j], t.options.softcap
        s, slope = dot(t.q, t.k[..., j, :], see) * t.scale, torch.ones(())
        if c is not None:
            tanh = torch.tanh(s / c)
            s, slope = c * tanh, 1 - tanh.square()
        s = s if t.bias is None else s + t.bias[..., j]
        return Scored(s.masked_fill(~see, -math.inf), slope, None if keep is None else keep[..., j], see)

    def _spread(self, t: Problem, b: Scored, j: Block) -> Callable[[Tensor], Tensor]:
        return lambda p: weighted(self.drop(p, b.keep, t.options.dropout_p), t.v[..., j, :], b.see)

    def drop(self, p: Tensor, keep: Tensor | None, rate: float) -> Tensor:
        """Apply dropout to one block."""
        return p if keep is None else dropped(p, keep, rate)

    def absorb(self, a: State, s: Tensor, spread: Callable[[Tensor], Tensor]) -> State:
        """Return the state with one more block."""
        m = torch.maximum(a.m, s.amax(-1, keepdim=True))
        old, p = (a.m - finite(m)).exp(), (s - finite(m)).exp()
        return State(m, a.l * old + p.sum(-1, keepdim=True), a.o * old + spread(p))

    def saved_lse(self, lse: Tensor, q_needs_grad: bool) -> Tensor:
        """Return the log-sum-exp that is saved for the backward pass."""
        return lse

    def recompute(self, s: Tensor, lse: Tensor) -> Tensor:
        """Return the weights of a block from its scores."""
        return (s - finite(lse)).exp()

    def delta(self, g: Tensor, out: Tensor) -> Tensor:
        """Compute Σ dO ⊙ O of each row, which is Σ P ⊙ dP."""
        return (g * out).sum(-1, keepdim=True)

    def d_scores(self, p: Tensor, dp: Tensor, rows: Rows, b: Scored, rate: float) -> Tensor:
        """Compute dS = P ⊙ (dropout(dP) − δ)."""
        return p * (self.drop(dp, b.keep, rate) - rows.delta)

    def blocks(self, n_k: int) -> Iterator[Block]:
        """Yield slices of the keys, a block each."""
        return (slice(j, min(j + self.block, n_k)) for j in range(0, n_k, self.block))

    def backward(self, t: Problem, keep: Tensor | None, g: Tensor, rows: Rows) -> tuple[Tensor, ...]:
        """Return (dq, dk, dv, ds), block by block."""
        dq, rate = torch.zeros_like(t.q), t.options.dropout_p
        dk, dv, ds = torch.zeros_like(t.k), torch.zeros_like(t.v), torch.zeros(t.see.shape, dtype=t.q.dtype)
        for j in self.blocks(t.k.shape[2]):
            b = self.scored(t, keep, j)
            p, dp = self.recompute(b.s, rows.lse), dot(g, t.v[..., j, :], b.see)
            ds[..., j] = self.d_scores(p, dp, rows, b, rate)
            raw = ds[..., j] * b.slope * t.scale
            dq += weighted(raw, t.k[..., j, :], b.see)
            dk[..., j, :] = raw.mT @ t.q
            dv[..., j, :] = self.drop(p, b.keep, rate).mT @ g
        return dq, dk, dv, ds


class _Function(torch.autograd.Function):
    """Ties the two passes of a core together for autograd."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, t: Problem, keep: Tensor | None, core: Flash
    ) -> Tensor:
        t = t._replace(q=q, k=k, v=v, bias=bias)
        out, m, lse = core.forward(t, keep, list(core.blocks(k.shape[2])))
        ctx.save_for_backward(q, k, v, bias, out, m, core.saved_lse(lse, ctx.needs_input_grad[0]))
        ctx.rest = t._replace(q=None, k=None, v=None, bias=None), keep, core  # type: ignore[arg-type]
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, bias, out, m, lse = ctx.saved_tensors
        t, keep, core = ctx.rest
        t = t._replace(q=q, k=k, v=v, bias=bias)
        dq, dk, dv, ds = core.backward(t, keep, g, Rows(m, lse, core.delta(g, out)))
        return dq, dk, dv, None if bias is None else ds, None, None, None
