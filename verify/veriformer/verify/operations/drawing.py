"""Draws of calls from their records: sizes that fit together by their letters, values of many kinds, options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from veriformer.spec.operations.call import Choice, Floats, Integers, Number, Operation, letters_of
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import MILD
from veriformer.verify.strategies import KINDS, Values, choice, leading_shapes, values, widths

_ORDINARY = ("gaussian",)
_SUMMED = ("gaussian", "one-signed", "spread")


def draw_call(record: Operation, trial: Trial) -> Arguments:
    """Draw a call: small sizes most often, large ones together; each option left out or of a value that it may have."""
    letters = _letters(record)
    large = trial.sizes({"rows": (1, 4000), **dict.fromkeys(letters, (1, 3000))}, lambda s: _work(record, s))
    if large is None:
        sizes = {letter: trial.draw(widths(5)) for letter in letters}
        lead = trial.draw(leading_shapes())
    else:
        sizes, lead = {letter: large[letter] for letter in letters}, trial.axes(large["rows"])
    # In a network, values of very different sizes give bounds too wide to tell right from wrong.
    kinds = MILD if any(isinstance(one, Floats) and one.sized_by_others for one in record.tensors.values()) else KINDS
    return {**_tensors(record, trial, sizes, lead, kinds, parameters=True), **_options(record, trial)}


def draw_plain_call(record: Operation, trial: Trial) -> Arguments:
    """Draw the plainest call: Gaussian values, sizes of at least 2, no option."""
    sizes = {letter: trial.draw(choice(3, 2, 4, 5)) for letter in _letters(record)}
    return _tensors(record, trial, sizes, (trial.draw(choice(2, 1, 3)),), _ORDINARY)


def draw_many(record: Operation, trial: Trial) -> Arguments:
    """Draw many rows, whose sums show how they were taken."""
    trial.only_large(0.5)
    ranges = {"rows": (16, 500), **dict.fromkeys(_letters(record), (8, 500))}
    large = trial.sizes(ranges, lambda s: _work(record, s))
    assert large is not None
    return _tensors(record, trial, large, (large["rows"],), _SUMMED)


def _letters(record: Operation) -> tuple[str, ...]:
    """Return the letters of the tensors that every call has, in order."""
    axes = (letters_of(one.axes) for one in record.tensors.values() if one.required)
    return tuple(dict.fromkeys(letter for several in axes for factors in several for letter in factors))


def _work(record: Operation, s: Mapping[str, int]) -> float:
    """Return the number of entries: 4 of tensors and 64 products of a row with all widths count as one."""
    sizes = [math.prod(s[x] for factors in letters_of(one.axes) for x in factors) for one in record.tensors.values()]
    products = math.prod(s[letter] for letter in _letters(record))
    return s["rows"] * (max(sizes[:1], default=1) + products / 64) + sum(sizes[1:]) / 4


def _tensors(
    record: Operation,
    trial: Trial,
    sizes: Mapping[str, int],
    lead: tuple[int, ...],
    kinds: Sequence[str],
    *,
    parameters: bool = False,
) -> dict[str, Any]:
    """Draw the tensors of a call, the first of one kind and the others of another, each with a seed of its own.

    parameters: whether those that may be left out are given now and then.
    """
    first, others = trial.draw(values(tuple(kinds))), trial.draw(values(tuple(kinds)))
    found: dict[str, Any] = {}
    for i, (name, one) in enumerate(record.tensors.items()):
        if not one.required and not (parameters and one.learned and trial.draw(choice(True, False, True, True))):
            continue
        kind = Values(others.kind, (others.seed + i) % 2**32) if i else first
        own = [math.prod(sizes[letter] for letter in factors) for factors in letters_of(one.axes)]
        shape = (*(lead if one.axes.startswith("...") else ()), *own)
        if isinstance(one, Floats):
            found[name] = trial.given(name, kind.array(*shape) if shape else kind.array(1)[0])
        if isinstance(one, Integers):
            found[name] = torch.as_tensor(np.asarray(kind.rng.integers(0, sizes[one.below or "V"], shape)))
    return found


def _options(record: Operation, trial: Trial) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in record.arguments.items():
        if isinstance(one, Choice):
            found |= trial.option(name, None, one.default, *one.others)
        elif isinstance(one, Number) and one.drawn:
            found |= trial.option(name, *one.drawn)
    return found
