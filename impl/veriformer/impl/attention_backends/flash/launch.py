"""Sizes of tiles, and of the programs that work on them, by width of the heads and by dtype: chosen, not searched."""

import functools
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Tiles:
    """Launches of halves by width of the heads, for cards that give a program so many bytes of shared memory.

    measured: the card, versions and widths for which they were the fastest, in attention over 4 096 tokens; None where
    they were chosen to fit.
    """

    shared: int
    measured: str | None
    halves: dict[int, Launch]


# For halves, Hopper's matrix instructions take 64 rows for each group of four warps, and two groups hide one another's
# exponentials. In float32, products go without those instructions: small tiles keep them in registers.
_FLOAT32 = {
    64: Launch(Blocks(64, 32, 8, 2), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1)),
    128: Launch(Blocks(32, 32, 4, 2), Blocks(32, 32, 8, 1), Blocks(32, 32, 8, 1), Blocks(32, 32, 4, 1)),
    256: Launch(Blocks(32, 16, 8, 1), Blocks(16, 16, 4, 1), Blocks(16, 16, 4, 1), Blocks(16, 16, 4, 1)),
}
_HOPPER = Tiles(
    shared=232_448,
    measured="H200, PyTorch 2.11, Triton 3.6: widths 64 and 128",
    halves={
        64: Launch(Blocks(128, 64, 4, 3), Blocks(64, 64, 4, 3), Blocks(64, 64, 4, 3), Blocks(64, 64, 4, 1)),
        128: Launch(Blocks(128, 64, 8, 3), Blocks(128, 64, 8, 3), Blocks(64, 128, 8, 3), Blocks(64, 64, 4, 1)),
        # These fit compute capability 10.0 as well, which has 512 columns of tensor memory for all accumulators.
        256: Launch(Blocks(64, 64, 8, 2), Blocks(64, 32, 8, 1), Blocks(64, 32, 8, 1), Blocks(32, 32, 4, 1)),
    },
)
_AMPERE = Tiles(
    shared=166_912,
    measured=None,
    halves={
        64: Launch(Blocks(128, 64, 4, 2), Blocks(64, 64, 4, 2), Blocks(64, 64, 4, 2), Blocks(64, 64, 4, 1)),
        128: Launch(Blocks(64, 64, 4, 2), Blocks(64, 32, 4, 2), Blocks(32, 64, 4, 2), Blocks(64, 64, 4, 1)),
        256: Launch(Blocks(64, 32, 4, 1), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1)),
    },
)
_SMALLEST = Tiles(
    shared=101_376,
    measured=None,
    halves={
        64: Launch(Blocks(64, 64, 4, 2), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1)),
        128: Launch(Blocks(64, 32, 4, 1), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1), Blocks(32, 32, 4, 1)),
        256: Launch(Blocks(32, 32, 4, 1), Blocks(16, 16, 4, 1), Blocks(16, 16, 4, 1), Blocks(16, 16, 4, 1)),
    },
)
TABLES = (_HOPPER, _AMPERE, _SMALLEST)
"""Tiles of all cards, those of the most shared memory first."""

_INTERPRETED = Launch.square(32)


def launch(width: int, dtype: torch.dtype, interpreted: bool, shared: int = TABLES[-1].shared) -> Launch:
    """Return how to launch the kernels for heads of this width, at most `MAX_WIDTH`.

    shared: bytes of shared memory that the card gives a program.
    """
    if interpreted:
        return _INTERPRETED
    tiles = next((tiles for tiles in TABLES if tiles.shared <= shared), TABLES[-1])
    table = _FLOAT32 if dtype == torch.float32 else tiles.halves
    return next(choice for most, choice in table.items() if width <= most)


@functools.cache
def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that a card gives a program; those of the smallest card for the CPU."""
    if device.type != "cuda":
        return TABLES[-1].shared
    card: Any = torch.cuda.get_device_properties(device)
    return int(getattr(card, "shared_memory_per_block_optin", card.shared_memory_per_block))


def padded(width: int) -> int:
    """Return the width of a tile that holds `width` columns: a power of two, as kernels want, and at least 16."""
    return max(16, 1 << (width - 1).bit_length())
