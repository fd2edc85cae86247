"""Faults of blockwise kernels: the online softmax, the merge of parts, the explicit backward pass."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, replace_by
from veriformer.verify.mutants.staged_reference.flash import Block, Flash, Problem, Rows, Scored, State, finite

_LOG2E = math.log2(math.e)


class _UnguardedRows(Flash):
    def recompute(self, s: Tensor, lse: Tensor) -> Tensor:
        return (s - lse).exp()


class _FirstBlockHidden(Flash):
    """In base 2 the lowest number overflows to −∞, and the first maximum is not guarded against it."""

    def absorb(self, a: State, s: Tensor, spread: Callable[[Tensor], Tensor]) -> State:
        s = s.clamp(min=torch.finfo(s.dtype).min) * _LOG2E
        m = torch.maximum(a.m, s.amax(-1, keepdim=True))
        old, p = (a.m - m).exp2(), (s - m).exp2()
        return State(m, a.l * old + p.sum(-1, keepdim=True), a.o * old + spread(p))

    def forward(self, t: Problem, keep: Tensor | None, blocks: list[Block]) -> tuple[Tensor, Tensor, Tensor]:
        o, m, lse = super().forward(t, keep, blocks)
        return o, m / _LOG2E, lse - finite(m) + finite(m) / _LOG2E


class _TileMaximum(Flash):
    def absorb(self, a: State, s: Tensor, spread: Callable[[Tensor], Tensor]) -> State:
        tile = s.amax(-1, keepdim=True)
        m = torch.maximum(a.m, tile)
        old, p = (a.m - finite(m)).exp(), (s - finite(tile)).exp()
        return State(m, a.l * old + p.sum(-1, keepdim=True), a.o * old + spread(p))


class _MixedBases(Flash):
    """The keys are taken in two parts, of which the second reports its log-sum-exp in base 2."""

    def forward(self, t: Problem, keep: Tensor | None, blocks: list[Block]) -> tuple[Tensor, Tensor, Tensor]:
        if len(blocks) < 2:
            return super().forward(t, keep, blocks)
        half = len(blocks) // 2
        o1, m1, lse1 = super().forward(t, keep, blocks[:half])
        o2, m2, lse2 = super().forward(t, keep, blocks[half:])
        lse = torch.logaddexp(lse1, lse2 * _LOG2E)
        w1, w2 = (lse1 - finite(lse)).exp(), (lse2 * _LOG2E - finite(lse)).exp()
        return o1 * w1 + o2 * w2, torch.maximum(m1, m2), torch.logaddexp(lse1, lse2)


class _DroppedTwice(Flash):
    def d_scores(self, p: Tensor, dp: Tensor, rows: Rows, b: Scored, rate: float) -> Tensor:
        return self.drop(p, b.keep, rate) * (dp - rows.delta)


class _NoDelta(Flash):
    def delta(self, g: Tensor, out: Tensor) -> Tensor:
        return torch.zeros_like(g[..., :1])


class _RescaledOnceMore(Flash):
    def d_scores(self, p: Tensor, dp: Tensor, rows: Rows, b: Scored, rate: float) -> Tensor:
        ds = super().d_scores(p, dp, rows, b, rate)
        if ds.shape[0] < 2:
            return ds
        return ds * (finite(b.s.amax(-1, keepdim=True)) - finite(rows.m)).exp()


class _UnsavedLse(Flash):
    def saved_lse(self, lse: Tensor, q_needs_grad: bool) -> Tensor:
        return lse if q_needs_grad else torch.zeros_like(lse)


FAULTS: dict[str, dict[str, Fault]] = {
    "MASK-02": {"attention": replace_by(_UnguardedRows())},
    "MASK-12": {"attention": replace_by(_FirstBlockHidden())},
    "FA-02": {"attention": replace_by(_TileMaximum())},
    "FA-03": {"attention": replace_by(_MixedBases())},
    "FA-04": {"attention": replace_by(_DroppedTwice())},
    "FA-05": {"attention": replace_by(_NoDelta())},
    "FA-06": {"attention": replace_by(_RescaledOnceMore())},
    "FA-11": {"attention": replace_by(_UnsavedLse())},
}
