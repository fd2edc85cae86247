"""Sizes of tiles, and of the programs that work on them, by width of the heads and by dtype: chosen, not searched."""

from dataclasses import dataclass

import torch

MAX_WIDTH = 256


@dataclass(frozen=True)
class Blocks:
    """Tiles of `rows` queries and `cols` keys, the warps of a program, and how many tiles are loaded ahead."""

    rows: int
    cols: int
    warps: int
    stages: int


@dataclass(frozen=True)
class Launch:
    """Tile sizes of each kernel that goes through tiles."""

    forward: Blocks
    to_queries: Blocks
    to_keys: Blocks
    to_bias: Blocks

    @classmethod
    def square(cls, side: int) -> "Launch":
        """Return equal square tiles for all kernels, small as tests and the interpreter want them."""
        return cls(*[Blocks(side, side, 4, 1)] * 4)


# For halves, Hopper's matrix instructions take 64 rows for each group of four warps, and two groups hide one another's
# exponentials. In float32, products go without those instructions: small tiles keep them in registers.
_HALVES = {
    64: Launch(Blocks(128, 128, 8, 2), Blocks(128, 64, 8, 2), Blocks(64, 128, 8, 2), Blocks(64, 64, 4, 1)),
    128: Launch(Blocks(128, 64, 8, 3), Blocks(128, 32, 8, 2), Blocks(32, 128, 8, 2), Blocks(64, 64, 4, 1)),
    256: Launch(Blocks(128, 64, 8, 2), Blocks(64, 32, 4, 1), Blocks(32, 64, 8, 1), Blocks(32, 32, 4, 1)),
}
_FLOAT32 = {
    64: Launch(Blocks(64, 32, 8, 2), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1)),
    128: Launch(Blocks(32, 32, 4, 2), Blocks(32, 32, 8, 1), Blocks(32, 32, 8, 1), Blocks(32, 32, 4, 1)),
    256: Launch(Blocks(32, 16, 8, 1), Blocks(16, 16, 4, 1), Blocks(16, 16, 4, 1), Blocks(16, 16, 4, 1)),
}
_INTERPRETED = Launch.square(32)


def launch(width: int, dtype: torch.dtype, interpreted: bool) -> Launch:
    """Return how to launch the kernels for heads of this width, at most `MAX_WIDTH`."""
    if interpreted:
        return _INTERPRETED
    table = _FLOAT32 if dtype == torch.float32 else _HALVES
    return next(choice for most, choice in table.items() if width <= most)


def padded(width: int) -> int:
    """Return the width of a tile that holds `width` columns: a power of two, as kernels want, and at least 16."""
    return max(16, 1 << (width - 1).bit_length())
