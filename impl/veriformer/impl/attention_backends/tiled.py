"""FlashAttention in plain PyTorch: exact attention in memory linear in the length."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from veriformer.impl.attention_backends.arguments import Call, backend
from veriformer.impl.attention_backends.dropout import Replay, keep_mask, survivor_scale
from veriformer.impl.attention_backends.exclusion import weigh
from veriformer.impl.attention_backends.tiles import Tile, cut
from veriformer.impl.precision import widen


def tiled(call: Call) -> Tensor:
    """`tiled`: FlashAttention, forward and backward, in plain PyTorch."""
    o = _Tiled.apply(widen(call.q), widen(call.k), widen(call.v), call.bias, call.mask, Plan.of(call))
    return o.to(call.q.dtype)  # type: ignore[no-any-return]


attention = backend(tiled)


@dataclass(frozen=True)
class Plan:
    """All that the two passes must agree on, apart from tensors."""

    row_blocks: list[list[Tile]]
    scale: float
    softcap: float | None
    dropout_p: float
    generator: torch.Generator | None
    poisoned: bool

    @classmethod
    def of(cls, call: Call) -> "Plan":
        """Cut a call into tiles."""
        return cls(
            cut(call, *_block_sizes(call)), call.scale, call.softcap, call.dropout_p, call.generator, call.poisoned()
        )


def _block_sizes(call: Call) -> tuple[int, int]:
    return 64, 512


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None, plan: Plan
    ) -> Tensor:
        ctx.plan = plan
        ctx.replay = Replay.of(plan.generator, q.device) if plan.dropout_p > 0 else None
        work = _Scores(plan, q, k, bias, mask, plan.generator)
        o = q.new_zeros(*q.shape[:3], v.shape[3])
        m, l = q.new_full((*q.shape[:3], 1), -torch.inf), q.new_zeros(*q.shape[:3], 1)
        for tiles in plan.row_blocks:
            for tile in tiles:
                _absorb(work, tile, v, tile.of_rows(o), tile.of_rows(m), tile.of_rows(l))
        empty = l == 0
        l.masked_fill_(empty, 1)
        m.masked_fill_(empty, torch.inf)  # in the backward pass exp(s − ∞) = 0
        o /= l
        ctx.save_for_backward(q, k, v, bias, mask, o, m, l)
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, bias, mask, o, m, l = ctx.saved_tensors
        plan: Plan = ctx.plan
        work = _Scores(plan, q, k, bias, mask, None if ctx.replay is None else ctx.replay.generator())
        g = g / l
        D = (g * o).sum(-1, keepdim=True)
        dq, dk, dv = (torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[3] else None
        for tiles in plan.row_blocks:
            for tile in tiles:
                p, slope, hidden = work.tile(tile)
                p = p.sub_(tile.of_rows(m)).exp_()
                g_i, v_j = work.rows(g, tile), work.cols(v, tile)
                dp = torch.bmm(g_i, v_j.mT).view_as(p)
                kept = p
                if plan.dropout_p > 0:
                    keep = work.keep(p)
                    kept = p * keep
                    dp = dp * keep
                if hidden is not None:
                    kept = kept.masked_fill(hidden, 0)
                work.cols(dv, tile).baddbmm_(work.flat(kept).mT, g_i)
                ds = p.mul_(dp.sub_(tile.of_rows(D)))
                if hidden is not None:
                    ds.masked_fill_(hidden, 0)
                if dbias is not None:
                    part = tile.of(dbias)
                    part += ds.sum_to_size(part.shape)
                if slope is not None:
                    ds.mul_(slope)
                    if hidden is not None:
                        ds.masked_fill_(hidden, 0)
                work.cols(dk, tile).baddbmm_(work.flat(ds).mT, work.q_i(tile))
                k_j = work.cols(k, tile)
                if plan.poisoned and hidden is not None:
                    step = weigh(work.flat(ds), k_j, work.flat(~hidden.expand(ds.shape)))
                else:
                    step = torch.bmm(work.flat(ds), k_j)
                tile.of_rows(dq).add_(step.view(*ds.shape[:3], -1), alpha=plan.scale)
        return dq, dk, dv, dbias, None, None


def _absorb(work: "_Scores", tile: Tile, v: Tensor, o: Tensor, m: Tensor, l: Tensor) -> None:
    """Take one tile into the running (maximum, sum, weighted sum) of its queries: the online softmax."""
    s, _, hidden = work.tile(tile)
    m_new = torch.maximum(m, s.amax(-1, keepdim=True))
    m_ref = m_new.masked_fill(m_new == -torch.inf, 0)  # nothing seen yet: −∞ − (−∞) would be NaN
    p = s.sub_(m_ref).exp_()
    decay = (m - m_ref).exp_()
    if hidden is not None:
        p.masked_fill_(hidden, 0)
    l.mul_(decay).add_(p.sum(-1, keepdim=True))
    if work.plan.dropout_p > 0:
        p.mul_(work.keep(p))
    v_j = work.cols(v, tile)
    if work.plan.poisoned and hidden is not None:
        step = weigh(work.flat(p), v_j, work.flat(~hidden.expand(p.shape)))
    else:
        step = torch.bmm(work.flat(p), v_j)
    o.mul_(decay).add_(step.view(o.shape))
    m.copy_(m_new)


class _Scores:
    def __init__(
        self,
        plan: Plan,
        q: Tensor,
        k: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        generator: torch.Generator | None,
    ) -> None:
        self.plan, self.bias, self.mask, self.generator = plan, bias, mask, generator
        self.q, self.k = q * plan.scale, k
        self.B, self.H, self.G = q.shape[0], q.shape[1], k.shape[1]

    def rows(self, x: Tensor, tile: Tile) -> Tensor:
        x = tile.of_rows(x)
        return x.reshape(self.B * self.G, (self.H // self.G) * x.shape[2], x.shape[3])

    def q_i(self, tile):
        return self.rows(self.q, tile)

    def cols(self, x: Tensor, tile: Tile) -> Tensor:
        x = tile.of_cols(x)
        return x.reshape(self.B * self.G, *x.shape[2:])

    def flat(self, x: Tensor) -> Tensor:
        return x.reshape(self.B * self.G, -1, x.shape[3])

    def tile(self, tile: Tile):
        q_i, k_j = self.rows(self.q, tile), self.cols(self.k, tile)
        s = torch.bmm(q_i, k_j.mT).view(self.B, self.H, tile.rows[1] - tile.rows[0], -1)
        slope = None
        hidden = tile.hidden(self.mask, s.device)
        if self.plan.softcap is not None:
            t = s.div_(self.plan.softcap).tanh_()
            slope = 1 - t.square()
            s = t * self.plan.softcap
        if self.bias is not None:
            s.add_(tile.of(self.bias))
        if hidden is not None:
            s.masked_fill_(hidden, -torch.inf)
        return s, slope, hidden

    def keep(self, p):
        keep = keep_mask(tuple(p.shape), self.plan.dropout_p, self.generator, p.device)
        return keep.to(p.dtype).mul_(survivor_scale(self.plan.dropout_p))
