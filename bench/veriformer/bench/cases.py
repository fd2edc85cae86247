"""Counted calls of attention: grids of shapes, and the call at a grid point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from veriformer.bench.calls import Shape
from veriformer.bench.polynomials import Axis, Grid, Point

_SIZES = ("B", "H", "G", "n_q", "n_k", "d_k", "d_v")
Letters = Mapping[str, "int | str"]


@dataclass(frozen=True)
class Case:
    """A family of calls.

    letters: for every letter of a Shape that the grid does not vary, its value or the letter whose value it takes.
    fixed: further letters of the claim that have a value here, such as the block size T.
    """

    name: str
    grid: Grid
    letters: Letters
    options: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)

    def shape(self, point: Point) -> Shape:
        """The call at a grid point."""
        followed = {name: point[value] if isinstance(value, str) else value for name, value in self.letters.items()}
        sizes = {**point, **followed}
        return Shape(**{name: sizes[name] for name in _SIZES}, options=self.options)

    @property
    def is_causal(self) -> bool:
        """True if later keys are hidden."""
        return bool(self.options.get("is_causal"))

    @property
    def known(self) -> dict[str, int | str]:
        """Values of the letters outside the grid."""
        return {**self.letters, **self.fixed}


_BATCH, _HEADS = Axis("B", (1, 2), 3), Axis("H", (2, 4), 6)
_KEY_WIDTH, _VALUE_WIDTH = Axis("d_k", (8, 16), 24), Axis("d_v", (8, 24), 40)

# Lengths below, at and above the sizes that blocks usually have; two heads to a group once, one to a group once.
RECTANGULAR = Case(
    "all lengths",
    Grid((_BATCH, _HEADS, Axis("n_q", (5, 256, 259), 515), Axis("n_k", (7, 256, 515), 771), _KEY_WIDTH, _VALUE_WIDTH)),
    letters={"G": 2},
)


def causal(block: int) -> Case:
    """Causal attention over itself, n_q = n_k = n, a multiple of the block size T."""
    length = Axis("n", (block, 2 * block, 3 * block), 5 * block)
    return Case(
        "causal",
        Grid((_BATCH, _HEADS, length, _KEY_WIDTH, _VALUE_WIDTH)),
        letters={"G": 2, "n_q": "n", "n_k": "n"},
        options={"is_causal": True},
        fixed={"T": block},
    )


# One width for all heads, as PyTorch's fused kernels want it. The length has a node more than a quadratic needs, so
# that a cubic term would be seen. A peak is a maximum of polynomials: the lengths are far above the widths and the
# usual block sizes, where one of them holds throughout.
SQUARE = Case(
    "self-attention",
    Grid((Axis("B", (1, 2), 3), Axis("H", (1, 2), 4), Axis("n", (512, 768, 1024, 1280), 1792), Axis("d", (8, 16), 24))),
    letters={"G": "H", "n_q": "n", "n_k": "n", "d_k": "d", "d_v": "d"},
    fixed={"w": 4},
)
