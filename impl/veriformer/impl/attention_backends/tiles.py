"""Tiles of the matrix of scores, so that no pass over attention ever holds all of it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.masks import band


@dataclass(frozen=True)
class Tile:
    """Queries `rows[0] … rows[1] − 1` against keys `cols[0] … cols[1] − 1`.

    `edge` is the shift and the window of the causal band where its edge runs through the tile, and None elsewhere.
    """

    rows: tuple[int, int]
    cols: tuple[int, int]
    edge: tuple[int, int | None] | None

    @property
    def height(self) -> int:
        """Number of queries."""
        return self.rows[1] - self.rows[0]

    @property
    def width(self) -> int:
        """Number of keys."""
        return self.cols[1] - self.cols[0]

    def of_rows(self, x: Tensor) -> Tensor:
        """Return this tile's rows of `x [..., n_q | 1, ·]`."""
        return x if x.shape[-2] == 1 else x[..., self.rows[0] : self.rows[1], :]

    def of_cols(self, x: Tensor) -> Tensor:
        """Return the rows of `x [..., n_k, ·]` that are this tile's columns."""
        return x[..., self.cols[0] : self.cols[1], :]

    def of(self, x: Tensor) -> Tensor:
        """Return this tile of `x [..., n_q | 1, n_k | 1]`."""
        x = self.of_rows(x)
        return x if x.shape[-1] == 1 else x[..., self.cols[0] : self.cols[1]]

    def hidden(self, mask: Tensor | None, device: torch.device) -> Tensor | None:
        """Return what is hidden, bool, broadcastable to `[B, H, rows, cols]`; None means nothing."""
        seen = None if mask is None else self.of(mask)
        if self.edge is not None:
            shift, window = self.edge
            causal = band(self.rows, self.cols, shift, window, device)
            seen = causal if seen is None else seen & causal
        return None if seen is None else ~seen


def cut(call: Call, side: int) -> list[list[Tile]]:
    """Return the tiles in which a query may see a key, block of queries by block of queries, none of them empty."""
    row_blocks = []
    for rows in _blocks(call.q.shape[2], side):
        tiles = (_tile(call, rows, cols) for cols in _blocks(call.k.shape[2], side))
        row_blocks.append([tile for tile in tiles if tile is not None and _any_visible(call.mask, tile)])
    return [tiles for tiles in row_blocks if tiles]


def _blocks(n: int, size: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def _tile(call: Call, rows: tuple[int, int], cols: tuple[int, int]) -> Tile | None:
    if not call.is_causal:
        return Tile(rows, cols, None)
    first, last = rows[0] + call.shift, rows[1] - 1 + call.shift  # positions of the first and the last query
    window = call.window or call.q.shape[2] + call.k.shape[2]
    oldest, newest = cols[0], cols[1] - 1
    if oldest > last or newest <= first - window:
        return None
    return Tile(rows, cols, (call.shift, call.window) if newest > first or oldest <= last - window else None)


def _any_visible(mask: Tensor | None, tile: Tile) -> bool:
    return mask is None or not checks.can_read_values(mask) or bool(tile.of(mask).any())
