"""Faults of dropout, alone and of attention's weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, replaced_by
from veriformer.verify.mutants.staged_reference.attention import Attention, Dense, draw_keep, dropped
from veriformer.verify.mutants.staged_reference.networks import kept
from veriformer.verify.targets.argument_validation import AttentionOptions

Draw = Callable[[torch.Size], Tensor]
"""Draws a mask of this shape, True where an entry survives."""

Drop = Callable[[Tensor, float, Draw], Tensor]
"""Dropout of x at a rate between 0 and 1."""


def _scaled_by_rate(x: Tensor, rate: float, draw: Draw) -> Tensor:
    return x.masked_fill(~draw(x.shape), 0) / rate


def _keeps_what_it_drops(x: Tensor, rate: float, draw: Draw) -> Tensor:
    return x.masked_fill(draw(x.shape), 0) / rate


class _FreshMask(torch.autograd.Function):
    """The backward pass runs under another mask than the forward pass did."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, draw: Draw) -> Tensor:
        ctx.rate, ctx.draw = rate, draw
        return dropped(x, draw(x.shape), rate)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        return dropped(g, ctx.draw(g.shape), ctx.rate), None, None


def _recomputed(x: Tensor, rate: float, draw: Draw) -> Tensor:
    out: Tensor = _FreshMask.apply(x, rate, draw)  # type: ignore[no-untyped-call]
    return out


_TOGETHER = 4


def _four_together(x: Tensor, rate: float, draw: Draw) -> Tensor:
    groups = torch.Size([math.ceil(x.numel() / _TOGETHER)])
    keep = draw(groups).repeat_interleave(_TOGETHER)[: x.numel()].reshape(x.shape)
    return dropped(x, keep, rate)


def _same_on_every_shard(x: Tensor, rate: float, draw: Draw) -> Tensor:
    return dropped(x, draw(x[:1].shape).expand(x.shape), rate)


def _both(drop: Drop) -> dict[str, Fault]:
    """The fault in the dropout of attention's weights and in dropout itself."""

    def alone(x: Tensor, p: float, training: bool, generator: torch.Generator | None) -> Tensor:
        if not training or p in (0, 1):
            return x * (0 if training and p else 1)
        return drop(x, p, lambda shape: kept(shape, p, generator))

    def of_weights(p: Tensor, o: AttentionOptions) -> Tensor:
        return drop(p, o.dropout_p, lambda shape: draw_keep(shape, o))

    return {"attention": replaced_by(Attention(core=Dense(drop=of_weights))), "dropout": replaced_by(alone)}


FAULTS: dict[str, dict[str, Fault]] = {
    "DO-02": _both(_scaled_by_rate),
    "DO-03": _both(_keeps_what_it_drops),
    "DO-05": _both(_recomputed),
    "DO-06": _both(_four_together),
    "DO-08": _both(_same_on_every_shard),
}
