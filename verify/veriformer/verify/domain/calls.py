"""Calls that a draw seldom makes or never, and plain calls of growing sizes.

At the edges: nothing to ask, nothing to see, masks of every shape, several dtypes, quantised caches, positions beyond a
table, dropout. The sizes grow for targets that refuse small ones, to see which sizes of each axis are taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Floats, Operation, letters_of
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.feature import Arguments
from veriformer.verify.contract.features.positions import TABLES
from veriformer.verify.contract.rules import SizeRule, rule
from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.judging.trial import Trial
from veriformer.verify.scripts.script import Seed
from veriformer.verify.strategies import Values

Sizes = Mapping[str, int]

WIDTHS = (1, 2, 3, 4, 8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256)
LENGTHS = (1, 2, 3, 5, 8, 16, 17, 32, 48, 64, 80, 96, 100, 128, 192, 256)
_STARTS = (64, 128, 16, 32, 256, 1024)


def _of_attention(a: Arguments) -> Iterator[Arguments]:
    """Yield edges of plain attention: empty axes, queries without a visible key, masks of all shapes, bias dtypes."""
    keys = {name: a[name] for name in ("k", "v")}
    yield {**a, "q": a["q"][:, :, :0]}
    yield {**a, **{name: x[:, :, :0] for name, x in keys.items()}}
    yield {name: a[name][:0] for name in ("q", "k", "v")}
    yield {**a, "q": torch.cat((a["q"], a["q"]), 2), "is_causal": True}
    yield {**a, "mask": torch.zeros(a["q"].shape[2], a["k"].shape[2], dtype=torch.bool, device=a["q"].device)}
    yield from ({**a, "mask": mask} for mask in _masks(a))
    full = a["q"].new_ones(*a["q"].shape[:3], a["k"].shape[2])
    yield from ({**a, "bias": full.to(dtype)} for dtype in dtypes.TORCH.values() if dtype is not full.dtype)


def _masks(a: Arguments) -> Iterator[torch.Tensor]:
    """Yield masks of rank 2 to 4, each axis of its size or 1, that hide some keys and not all."""
    full = (*a["q"].shape[:3], a["k"].shape[2])
    for rank in (2, 3, 4):
        for shape in itertools.product(*((1, size) for size in full[-rank:])):
            count = torch.Size(shape).numel()
            yield (torch.arange(count, device=a["q"].device) % 3 != 1).reshape(shape)


def _of_clipping(a: Arguments) -> Iterator[Arguments]:
    """Yield gradients of two dtypes."""
    first, *others = a["grads"]
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        if dtype is not first.dtype:
            yield {**a, "grads": [first, *(x.to(dtype) for x in others or [first])]}


def _of_caches(a: Arguments) -> Iterator[Arguments]:
    """Yield a quantised cache, which only the checks of its errors draw."""
    yield {**a, "quantization": "int8"}


def _of_rope(a: Arguments) -> Iterator[Arguments]:
    """Yield positions one beyond the end of every usual table."""
    positions = a["positions"]
    yield from ({**a, "positions": positions - positions.max() + size} for size in TABLES if positions.numel())


def _dropping(a: Arguments) -> Iterator[Arguments]:
    """Yield calls with dropout, which only the checks of its rates draw: with generator, without, without training."""
    yield {**a, "dropout_p": 0.25, "training": True, "generator": Seed(0)}
    yield {**a, "dropout_p": 0.25, "training": True}
    yield {**a, "dropout_p": 0.25, "training": False}


_EDGES: Mapping[str, Callable[[Any], Iterator[Arguments]]] = {
    "attention": _of_attention,
    "clip_grad_norm": _of_clipping,
    "kv_cache": _of_caches,
    "rope": _of_rope,
    "cached_attention": _of_caches,
}


def edges(operation: str, arguments: Arguments) -> Iterator[Arguments]:
    """Yield the edges of a plain call; none where the draws make them all."""
    if operation in _EDGES:
        yield from _EDGES[operation](arguments)
    if "dropout_p" in OPTIONAL.get(operation, {}):
        yield from _dropping(arguments)


def _grown(record: Operation, trial: Trial, s: Sizes) -> Arguments:
    """Return a plain call of these sizes: three leading axes of rows, one batch element, two key heads and heads."""
    letters = {letter: s[axis] for axis, governed in record.grown.items() for letter in governed}
    known = {"B": 1, "G": 2, "R": 1, **letters}
    made = {}
    for i, (name, one) in enumerate(record.call.items()):
        if isinstance(one, Floats) and one.required:
            shape = [math.prod(known[letter] for letter in factors) for factors in letters_of(one.axes)]
            lead = [3] if one.axes.startswith("...") else []
            made[name] = trial.tensor(Values("gaussian", 7 + i).array(*lead, *shape))
    return made


def find_size_rules(operation: str, trial: Trial, answers: Callable[[Trial, Arguments], bool]) -> list[SizeRule]:
    """Return the rules on sizes of an operation; none where no size that was tried is taken, or all are.

    The widths of keys and values are varied together: where they must be equal, another rule is to say so.
    """
    record = OPERATIONS.get(operation)
    if record is None or not record.grown:
        return []
    axes = {axis: LENGTHS if axis.startswith("n") else WIDTHS for axis in record.grown}

    def taken(s: Sizes) -> bool:
        return answers(trial, _grown(record, trial, s))

    start = _first_taken(axes, taken)
    if start is None:
        return []
    found: list[SizeRule | None] = []
    for axis, ladder in axes.items():
        together = ("d_k", "d_v") if axis in ("d_k", "d_v") else (axis,)
        held = [size for size in ladder if taken({**start, **dict.fromkeys(together, size)})]
        found.append(rule(axis, ladder, held))
    return [one for one in found if one is not None]


def _first_taken(axes: Mapping[str, Sequence[Any]], taken: Callable[[Sizes], bool]) -> Sizes | None:
    """Return the first sizes that are accepted, lengths and widths equal or separate; None where none are."""
    lengths = [axis for axis in axes if axis == "n"]
    for width in _STARTS:
        for length in (width, *_STARTS) if lengths else (width,):
            s = dict.fromkeys(axes, width) | dict.fromkeys(lengths, length)
            if taken(s):
                return s
    return None
