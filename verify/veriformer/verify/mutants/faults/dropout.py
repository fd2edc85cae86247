"""Faults of the dropout of attention's weights."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, replaced_by
from veriformer.verify.mutants.staged_reference.attention import Attention, Dense, draw_keep, dropped
from veriformer.verify.targets.argument_validation import AttentionOptions


def _scaled_by_rate(p: Tensor, o: AttentionOptions) -> Tensor:
    return p.masked_fill(~draw_keep(p.shape, o), 0) / o.dropout_p


def _keeps_what_it_drops(p: Tensor, o: AttentionOptions) -> Tensor:
    return p.masked_fill(draw_keep(p.shape, o), 0) / o.dropout_p


class _FreshMask(torch.autograd.Function):
    """The backward pass runs under another mask than the forward pass did."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, o: AttentionOptions) -> Tensor:
        ctx.options = o
        return dropped(p, draw_keep(p.shape, o), o.dropout_p)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return dropped(g, draw_keep(g.shape, ctx.options), ctx.options.dropout_p), None


def _recomputed(p: Tensor, o: AttentionOptions) -> Tensor:
    out: Tensor = _FreshMask.apply(p, o)  # type: ignore[no-untyped-call]
    return out


_TOGETHER = 4


def _four_together(p: Tensor, o: AttentionOptions) -> Tensor:
    groups = torch.Size([math.ceil(p.numel() / _TOGETHER)])
    keep = draw_keep(groups, o).repeat_interleave(_TOGETHER)[: p.numel()].reshape(p.shape)
    return dropped(p, keep, o.dropout_p)


def _same_on_every_shard(p: Tensor, o: AttentionOptions) -> Tensor:
    return dropped(p, draw_keep(p[:1].shape, o).expand(p.shape), o.dropout_p)


FAULTS: dict[str, dict[str, Fault]] = {
    "DO-02": {"attention": replaced_by(Attention(core=Dense(drop=_scaled_by_rate)))},
    "DO-03": {"attention": replaced_by(Attention(core=Dense(drop=_keeps_what_it_drops)))},
    "DO-05": {"attention": replaced_by(Attention(core=Dense(drop=_recomputed)))},
    "DO-06": {"attention": replaced_by(Attention(core=Dense(drop=_four_together)))},
    "DO-08": {"attention": replaced_by(Attention(core=Dense(drop=_same_on_every_shard)))},
}
