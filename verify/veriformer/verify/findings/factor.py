"""Results and gradients that are wrong by a factor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veriformer.verify.findings.calls import APART, Case, cases, furthest
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.sentence import quantity
from veriformer.verify.findings.signature import Failing
from veriformer.verify.judging.judge import Floats, Reference
from veriformer.verify.targets.target import Target

_CERTAIN = 0.05
"""A factor is told where it is known to this share."""

_ENTRIES = 3
"""Some call has so many entries at least: of fewer, most things are a multiple."""


@dataclass(frozen=True)
class _Factor:
    """A multiple: value, and by how much it may be off, since both sides are rounded; and of how many entries."""

    value: float
    error: float
    entries: int


def factor(cause: Cause, target: Target) -> str | None:
    """In words, by which factor the result or a gradient is wrong in all calls of a cause; None where it is by none."""
    if cause.signature.kind not in (Failing.VALUE, Failing.GRADIENT) or cause.condition.requirement is not None:
        return None
    wrong = [case for case in cases(cause.explained, target) if furthest(case.given, case.exact) > APART]
    found = [one for case in wrong for one in _factors(case, cause.signature.gradients)]
    if not found or None in found:
        return None
    return _words(quantity(cause), [one for one in found if one is not None])


def _words(thing: str, found: Sequence[_Factor]) -> str | None:
    surest = min(found, key=lambda one: one.error)
    if surest.error > _CERTAIN * max(1.0, abs(surest.value)) or max(one.entries for one in found) < _ENTRIES:
        return None
    if all(abs(one.value - surest.value) <= one.error + surest.error for one in found):
        if surest.value == 0:
            return f"the {thing} is 0"
        told = _shown(surest.value, 4 if surest.error < 1e-4 else 2)
        return f"the {thing} has the wrong sign" if told == "-1" else f"the {thing} is {told} times what it should be"
    low, high = (_shown(pick(one.value for one in found), 3) for pick in (min, max))
    return f"the {thing} is a multiple of what it should be, by another factor in each call ({low} to {high})"


def _shown(x: float, digits: int) -> str:
    return np.format_float_positional(x, digits, fractional=False, trim="-")


def _factors(case: Case, gradients: Sequence[str]) -> Iterator[_Factor | None]:
    """The factor of each part of a call that is wrong and that a cause is about; None where it is no multiple."""
    for name, exact in case.exact.items():
        about = name.removeprefix("gradient of ") in gradients if gradients else name.startswith("result")
        if about and furthest({name: case.given[name]}, {name: exact}) > APART:
            yield _factor(case.given[name], exact)


def _factor(given: Floats, exact: Reference) -> _Factor | None:
    right, bound = exact.exact, exact.bound
    if given.shape != right.shape or not all(np.isfinite(x).all() for x in (given, right, bound)):
        return None
    told = np.abs(right) > APART * bound
    if not told.any():
        return None
    scale = 1 / np.maximum(bound, np.abs(right) * np.finfo(np.float64).eps)[told]
    x, y = scale * right[told], scale * given[told]
    value = float(x @ y / (x @ x))
    allowed = 2 * (1 + abs(value)) * bound
    if (np.abs(given - value * right) > allowed).any():
        return None
    return _Factor(value, float((allowed[told] / np.abs(right[told])).min()), int(told.sum()))
