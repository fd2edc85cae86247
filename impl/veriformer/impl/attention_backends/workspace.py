"""Shared steps of the two passes of tiled attention."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.dropout import keep_mask
from veriformer.impl.attention_backends.masked_matmul import masked_matmul
from veriformer.impl.attention_backends.tiles import Tile, cut


@dataclass(frozen=True)
class Plan:
    """All that the two passes must agree on, apart from tensors."""

    row_blocks: list[list[Tile]]
    scale: float
    softcap: float | None
    dropout_p: float
    poisoned: bool

    @classmethod
    def of(cls, call: Call, side: int | None) -> "Plan":
        """Cut a call into tiles."""
        row_blocks = cut(call, side or _side(call))
        return cls(row_blocks, call.scale, call.softcap, call.dropout_p, call.poisoned())


def _side(call: Call) -> int:
    """Return the tiles' side: large ones make fast products, small ones fit the cache and waste less at the causal
    edge.
    """
    heads = call.q.shape[0] * call.q.shape[1]
    return 128 if call.is_causal or heads > 16 else 256


@dataclass(frozen=True)
class Scores:
    """Tile of scores, `[B·G, R·rows, cols]`, with what is hidden in it and the slope of the soft-cap."""

    s: Tensor
    hidden: Tensor | None
    slope: Tensor | None


def add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add `a @ b` to `total`, in place."""
    torch.baddbmm(total, a, b, out=total)


class Workspace:
    """The steps that each tile goes through, and the memory for it.

    With `R = H // G`, a matrix of a tile is `[B·G, R·rows, ·]`, which is `[B, H, rows, ·]` seen otherwise: the query
    heads that read one key head are rows of one matrix product, and keys and values are never repeated.
    """

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
        self.B, self.H, self.G = q.shape[0], q.shape[1], k.shape[1]
        self._memory: dict[str, Tensor] = {}

    def q_block(self, x: Tensor, tile: Tile) -> Tensor:
        """Return a tile's rows of `x [B, H, n_q, ·]` as `[B·G, R·rows, ·]`."""
        return tile.of_rows(x).reshape(self.B * self.G, self.H // self.G * tile.height, x.shape[3])

    def kv_block(self, x: Tensor, tile: Tile) -> Tensor:
        """Return a tile's columns of `x [B, G, n_k, ·]` as `[B·G, cols, ·]`, a view where `x` is contiguous."""
        return tile.of_cols(x).reshape(self.B * self.G, tile.width, x.shape[3])

    def by_head(self, x: Tensor, tile: Tile) -> Tensor:
        """Return `x [B·G, R·rows, ·]` as a view `[B, H, rows, ·]`."""
        return x.view(self.B, self.H, tile.height, x.shape[2])

    def product(self, name: str, a: Tensor, b: Tensor) -> Tensor:
        """Return `a @ bᵀ`, in memory that the next tile uses again."""
        shape = (a.shape[0], a.shape[1], b.shape[1])
        numel = math.prod(shape)
        if name not in self._memory or self._memory[name].numel() < numel:
            self._memory[name] = a.new_empty(numel)
        return torch.bmm(a, b.mT, out=self._memory[name][:numel].view(shape))

    def scores(self, q_i: Tensor, k_j: Tensor, tile: Tile) -> Scores:
        """Return a tile's scores: scaled (as `q_i` is), soft-capped, biased, masked."""
        s, slope = self.product("s", q_i, k_j), None
        hidden = tile.hidden(self.mask, s.device)
        self.zero_hidden(s, hidden, tile)
        if self.plan.softcap is not None:
            t = s.div_(self.plan.softcap).tanh_()
            slope = 1 - t.square()
            s.mul_(self.plan.softcap)
        if self.bias is not None:
            self.by_head(s, tile).add_(tile.of(self.bias))
        if hidden is not None:
            self.by_head(s, tile).masked_fill_(hidden, -torch.inf)
        return Scores(s, hidden, slope)

    def keep(self, p: Tensor) -> Tensor:
        """Draw which weights of the next tile survive dropout."""
        return keep_mask(tuple(p.shape), self.plan.dropout_p, self.generator, p.device)

    def zero_hidden(self, x: Tensor, hidden: Tensor | None, tile: Tile) -> Tensor:
        """Set what is hidden to 0, in place, if it may be something that a weight of 0 does not remove."""
        if self.plan.poisoned and hidden is not None:
            self.by_head(x, tile).masked_fill_(hidden, 0)
        return x

    def accumulate_pv(self, total: Tensor, weights: Tensor, rows: Tensor, hidden: Tensor | None, tile: Tile) -> None:
        """Add `weights @ rows` to `total`, in place; hidden rows take no part, whatever they hold."""
        if self.plan.poisoned and hidden is not None:
            visible = ~hidden.expand(self.B, self.H, tile.height, tile.width)
            total.add_(masked_matmul(weights, rows, visible.reshape(weights.shape)))
        else:
            add_product(total, weights, rows)
