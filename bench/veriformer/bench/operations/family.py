"""A family of calls of one operation: which sizes vary, how a call is made, and what the specification predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from veriformer.bench.polynomials import Axis
from veriformer.spec import costs
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Integers, Tensor, letters_of

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
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the call by name, beside its tensors."""

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


def recorded(
    operation: str,
    letters: str,
    known: Costs,
    *last: object,
    rows: str = "N",
    renamed: Mapping[str, str | int] | None = None,
    gradients: bool = True,
    options: Mapping[str, Any] | None = None,
    **kind: Any,
) -> Family:
    """Return the calls with random tensors, as the record of the operation lists them, then `last` and the options.

    rows: letters of the leading axes. renamed: by letter of the record that of the family, or a size. kind: further
    fields of the family.
    """
    arguments = [one for one in OPERATIONS[operation].call.values() if isinstance(one, Tensor)]
    own, options = renamed or {}, options or {}

    def call(run: Operation, sizes: Sizes) -> Call:
        def size(letter: str) -> int:
            found = own.get(letter, letter)
            return sizes[found] if isinstance(found, str) else found

        tensors = []
        for one in arguments:
            shape = [prod(map(size, factors)) for factors in letters_of(one.axes.replace("...", rows))]
            below = one.below if isinstance(one, Integers) else None
            tensors.append(torch.randint(size(below), shape) if below else torch.randn(shape))
        return Call(lambda: run(*tensors, *last, **options), tensors, gradients)

    return Family(operation, letters, call, known, options=options, **kind)


def sized(operation: str, letters: str, known: Costs) -> Family:
    """Return the calls whose arguments are the sizes of these letters."""
    return Family(operation, letters, lambda run, s: Call(lambda: run(*s.values()), gradients=False), known)


def substituted(cost: Callable[[], Any], **sizes: Any) -> Callable[[], Any]:
    """Return a cost with some letters replaced, by others or by numbers."""
    letters = {costs.symbol(name): costs.symbol(x) if isinstance(x, str) else x for name, x in sizes.items()}
    return lambda: cost().subs(letters, simultaneous=True)


def named(known: Mapping[str, Callable[[], Any]], **sizes: Any) -> Costs:
    """Return the specification's costs by their names, with some letters replaced."""
    found = {name: substituted(cost, **sizes) if sizes else cost for name, cost in known.items()}
    flops, back = found.get("FLOPs"), found.get("backward FLOPs")
    return Costs(
        flops=flops,
        total=(lambda: flops() + back()) if flops and back else flops,
        moved=found.get("bytes") or found.get("bytes at least"),
        others=found.get("other operations"),
        extra=found.get("peak extra bytes"),
        kept=found.get("bytes of state"),
        parameters=found.get("parameters"),
    )


def rowwise(operation: str) -> Costs:
    """Return the specification's costs of an operation on rows."""
    return named(costs.lazily(operation))
