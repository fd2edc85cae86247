"""FlashAttention in plain PyTorch: exact attention in memory linear in the length."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from veriformer.impl import checks
from veriformer.impl.attention_backends.arguments import Attention, backend
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.dropout import Replay, dropout_scale
from veriformer.impl.attention_backends.tiles import Tile
from veriformer.impl.attention_backends.workspace import Plan, Workspace, add_product
from veriformer.impl.derivatives import apply_autograd_function
from veriformer.impl.precision import upcast


def tiled(call: Call, side: int | None = None) -> Tensor:
    r"""`tiled`: FlashAttention (Dao et al., 2022, 2023) in plain PyTorch, with O(n) extra memory.

    No pass holds more than two tiles of scores. Forward keeps, for each query, the running maximum $m$, the sum
    $l = \sum_j e^{s_j - m}$ and the weighted sum of values, and rescales them when the maximum grows. Tiles in which no
    query sees a key are skipped. Backward forms $P = e^{S - m} / l$ again, tile by tile, and with
    $D_i = \sum_c g_{ic}\, o_{ic}$ takes

    $$\partial V = \tilde P^\top G, \quad \partial S = P \odot (\widetilde{G V^\top} - D), \quad
      \partial Q = \mathrm{scale}\, \partial S\, K, \quad \partial K = \mathrm{scale}\, \partial S^\top Q$$

    where the tilde is dropout, whose masks are drawn again from the generator's earlier state. The log-sum-exp is saved
    as its two parts: $m + \log l$ would round off the digits of $\log l$ when scores are large.
    """
    q, k, v = upcast(call.q), upcast(call.k), upcast(call.v)
    o = apply_autograd_function(_Tiled, q, k, v, call.bias, call.mask, Plan.of(call, side), call.generator)
    return o.to(call.q.dtype)


attention = backend(tiled)


def attention_in_tiles(side: int) -> Attention:
    """Return `tiled` with tiles of at most `side × side`, for tests, and for shapes that the default serves badly."""
    checks.integer("side", side, minimum=1)

    def compute(call: Call) -> Tensor:
        return tiled(call, side)

    compute.__doc__, compute.__module__ = tiled.__doc__, tiled.__module__
    return backend(compute)


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        plan: Plan,
        generator: torch.Generator | None,
    ) -> Tensor:
        ctx.plan = plan
        ctx.replay = Replay.of(generator, q.device) if plan.dropout_p > 0 else None
        work = Workspace(plan, q, k, bias, mask, generator)
        o = q.new_zeros(*q.shape[:3], v.shape[3])
        m = q.new_full((*q.shape[:3], 1), torch.inf)  # e^(s − ∞) = 0 is what backward needs where nothing is seen
        l = torch.ones_like(m)
        for tiles in plan.row_blocks:
            for whole, block in zip((o, m, l), _attend(work, tiles, q, k, v), strict=True):
                tiles[0].of_rows(whole).copy_(work.by_head(block, tiles[0]))
        ctx.save_for_backward(q, k, v, bias, mask, o, m, l)
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, bias, mask, o, m, l = ctx.saved_tensors
        work = Workspace(ctx.plan, q, k, bias, mask, ctx.replay and ctx.replay.generator())
        grads = _Gradients(_zeros(q), _zeros(k), _zeros(v), _zeros(bias) if ctx.needs_input_grad[3] else None)
        for tiles in ctx.plan.row_blocks:
            queries = _Queries.of(work, tiles[0], q, o, m, l, g)
            for tile in tiles:
                _backpropagate(work, tile, queries, k, v, grads)
            dq_i = queries.dq.mul_(ctx.plan.scale)
            tiles[0].of_rows(grads.q).copy_(work.by_head(dq_i, tiles[0]))
        return grads.q, grads.k, grads.v, grads.bias, None, None, None


def _attend(work: Workspace, tiles: list[Tile], q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return output, maximum and sum for one block of queries: the online softmax over its tiles."""
    q_i = work.q_block(q, tiles[0]) * work.plan.scale  # [B·G, R·rows, d_k]
    o = q_i.new_zeros(*q_i.shape[:2], v.shape[3])
    m = q_i.new_full((*q_i.shape[:2], 1), torch.finfo(q_i.dtype).min)  # finite, for −∞ − (−∞) would be NaN
    l = torch.zeros_like(m)
    for tile in tiles:
        scores = work.scores(q_i, work.kv_block(k, tile), tile)
        m_old, m = m, torch.maximum(m, scores.s.amax(-1, keepdim=True))
        p = scores.s.sub_(m).exp_()
        alpha = m_old.sub_(m).exp_()
        l = p.sum(-1, keepdim=True).addcmul_(l, alpha)
        if work.plan.dropout_p > 0:
            p.mul_(work.keep(p))
        work.accumulate_pv(o.mul_(alpha), p, work.kv_block(v, tile), scores.hidden, tile)
    empty = l == 0
    l.masked_fill_(~(l > 0), 1)  # NaN too: backward divides by l, and would carry NaN to keys that the row cannot see
    return o.mul_(dropout_scale(work.plan.dropout_p)).div_(l), m.masked_fill_(empty, torch.inf), l


@dataclass(frozen=True)
class _Queries:
    """Tensors of one block of queries for backward, with their gradient so far, each `[B·G, R·rows, ·]`."""

    q: Tensor
    m: Tensor
    g: Tensor
    D: Tensor
    dq: Tensor

    @classmethod
    def of(cls, work: Workspace, tile: Tile, q: Tensor, o: Tensor, m: Tensor, l: Tensor, g: Tensor) -> "_Queries":
        """Gather them; dividing `g` by `l` here spares dividing every tile of weights."""
        q_i = work.q_block(q, tile) * work.plan.scale
        g_i = work.q_block(g, tile) / work.q_block(l, tile)
        D = (g_i * work.q_block(o, tile)).sum(-1, keepdim=True)
        g_i = g_i * dropout_scale(work.plan.dropout_p)
        return cls(q_i, work.q_block(m, tile), g_i, D, torch.zeros_like(q_i))


@dataclass(frozen=True)
class _Gradients:
    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None


def _backpropagate(work: Workspace, tile: Tile, queries: _Queries, k: Tensor, v: Tensor, grads: _Gradients) -> None:
    """Add what one tile contributes to every gradient."""
    k_j = work.kv_block(k, tile)
    scores = work.scores(queries.q, k_j, tile)
    hidden = scores.hidden
    p = work.zero_hidden(scores.s.sub_(queries.m).exp_(), hidden, tile)
    dp = work.product("dp", queries.g, work.kv_block(v, tile))
    kept = p
    if work.plan.dropout_p > 0:
        keep = work.keep(p)
        dp.mul_(keep)
        kept = p * keep
    add_product(work.kv_block(grads.v, tile), kept.mT, queries.g)
    ds = work.zero_hidden(dp.sub_(queries.D).mul_(p), hidden, tile)
    if grads.bias is not None:
        dbias = tile.of(grads.bias)
        dbias.add_(work.by_head(ds, tile).sum_to_size(dbias.shape))
    if scores.slope is not None:
        ds.mul_(scores.slope)
    add_product(work.kv_block(grads.k, tile), ds.mT, queries.q)
    work.accumulate_pv(queries.dq, ds, k_j, hidden, tile)


def _zeros(x: Tensor) -> Tensor:
    return torch.zeros(x.shape, dtype=x.dtype, device=x.device)
