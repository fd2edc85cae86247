"""A family of calls of one operation: which sizes vary, how a call is made, and what the specification predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from veriformer.bench.polynomials import Axis
from veriformer.spec import costs

FLOPS, MOVED, PEAK, EXTRA, KEPT, CALLS, ALLOCATIONS, WAITS = (
    "FLOPs",
    "bytes moved",
    "peak bytes",
    "peak extra bytes",
    "kept bytes",
    "operator calls",
    "allocations",
    "waits of the host",
)
FORWARD, RECOMPUTED, BETWEEN = "FLOPs before any gradient", "FLOPs computed again", "bytes kept between the passes"
QUANTITIES = (FLOPS, MOVED, PEAK, EXTRA, KEPT, CALLS, ALLOCATIONS, WAITS)


Operation = Callable[..., Any]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Call:
    """Call to count. run: gives the result. tensors: held by the caller. gradients: whether floating ones have any."""

    run: Callable[[], Any]
    tensors: Sequence[torch.Tensor] = ()
    gradients: bool = True


@dataclass(frozen=True)
class Costs:
    """Predicted costs of the specification, in the letters of the family; None where it predicts nothing.

    flops: of the forward pass. total: of both passes. moved: the least bytes, and what every elementwise operation of
    the formula moves if it is done by itself. extra: bytes alive beside arguments and results. kept: bytes of state.
    parameters: elements whose gradients the backward pass writes.
    Of attention, total_in_blocks computes the scores again, extra_in_blocks never holds them as a whole,
    others_in_blocks reads rows and keys once for each block of the others, moved_as_printed has keys for every head.
    waits: how often the host asks for a value of an array, for which a device must finish first.
    rivals: FLOPs, or kept bytes, of other ways, by their names. grows: quantities whose growth alone is predicted.
    """

    flops: Callable[[], Any] | None = None
    total: Callable[[], Any] | None = None
    moved: Callable[[], Any] | None = None
    others: Callable[[], Any] | None = None
    extra: Callable[[], Any] | None = None
    kept: Callable[[], Any] | None = None
    parameters: Callable[[], Any] | None = None
    total_in_blocks: Callable[[], Any] | None = None
    extra_in_blocks: Callable[[], Any] | None = None
    others_in_blocks: Callable[[], Any] | None = None
    moved_as_printed: Callable[[], Any] | None = None
    waits: Callable[[], Any] | None = None
    rivals: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    grows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """Calls of an operation that differ in their sizes."""

    operation: str
    letters: str
    call: Callable[..., Call]
    costs: Costs = field(default_factory=Costs)
    case: str = "all sizes"
    values: bool = False
    """True if the call reads values, so that it must run on real tensors."""
    beside: tuple[str, ...] = ()
    """Operations of the same target that the call needs besides."""
    nodes: Mapping[str, Axis] = field(default_factory=dict)
    """Other values than usual for some letters."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Grid axes, one per letter."""
        return tuple(self.nodes.get(letter) or AXES[letter] for letter in self.letters.split())


def _axis(name: str, *nodes: int) -> tuple[str, Axis]:
    return name, Axis(name, nodes[:-1], nodes[-1])


# Four nodes tell a degree up to 3 apart; the last number is kept out of the fit. Peaks are maxima of polynomials:
# rows are far more than the widths, and inner widths far more than outer ones, so that one of them holds throughout.
# Tokens before are more than two windows.
AXES = dict(
    [
        _axis("B", 1, 2, 3, 4, 6),
        _axis("G", 1, 2, 3, 4, 6),
        _axis("R", 2, 3, 4, 5, 7),
        _axis("H", 2, 4, 8, 16, 32),
        _axis("N", 200, 260, 320, 440, 600),
        _axis("n", 512, 640, 768, 1024, 1280),
        _axis("n_q", 128, 256, 384, 512, 640),
        _axis("n_k", 640, 768, 896, 1024, 1280),
        _axis("d", 8, 16, 24, 40, 56),
        _axis("f", 120, 140, 160, 200, 260),
        _axis("o", 8, 16, 24, 40, 56),
        _axis("V", 900, 1100, 1300, 1700, 2300),
        _axis("E", 4, 5, 6, 8, 12),
        _axis("P", 96, 192, 288, 480, 672),
        _axis("t", 34, 40, 46, 52, 60),
        _axis("W", 4, 6, 8, 12, 16),
        _axis("s", 1, 2, 3, 5),
        _axis("m", 64, 96, 128, 192, 256),
    ]
)


def random(*sizes: int) -> torch.Tensor:
    """Numbers of the normal distribution."""
    return torch.randn(sizes)


def classes(*sizes: int, below: int) -> torch.Tensor:
    """Classes below a number."""
    return torch.randint(below, sizes)


def on(*letters: str, **options: Any) -> Callable[[Operation, Sizes], Call]:
    """Calls with random tensors: each word lists the sizes of one argument, such as ``"N d"``."""

    def call(operation: Operation, sizes: Sizes) -> Call:
        tensors = [random(*(sizes[x] for x in word.split())) for word in letters]
        return Call(lambda: operation(*tensors, **options), tensors)

    return call


def substituted(cost: Callable[[], Any], **sizes: Any) -> Callable[[], Any]:
    """Return a cost with some letters replaced, by others or by numbers."""
    letters = {costs.symbol(name): costs.symbol(x) if isinstance(x, str) else x for name, x in sizes.items()}
    return lambda: cost().subs(letters, simultaneous=True)
