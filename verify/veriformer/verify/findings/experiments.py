"""Experiments on rows that fail: without some calls, under another claim, on copies of the arguments.

No single example of a row whose examples are judged together fails, so that none is evidence in the search for causes.
But a wrong result under some condition spoils a mean over all calls as well, and then the row says nothing of its own.

Rows that fail by the choice among equal scores alone hold under the claim that ties are broken otherwise. No condition
on the arguments need be found, which could not see the scores of experts, and would have to know how long rows are
before a sort is no longer stable.

Failures that vanish on copies of the arguments are due to a target that modifies them.
Results that are wrong by a factor are multiples of what is expected.
Failures that vanish with a sound implementation of another operation are due to that one.
"""

from __future__ import annotations

import functools
import importlib  # a sound implementation: needed only where something fails
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.calls import APART, Case, cases, furthest
from veriformer.verify.findings.causes import Cause, wrong_result
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.evidence import Failing
from veriformer.verify.findings.sentence import STABLE, quantity
from veriformer.verify.judging.judge import Floats, Reference, RunStatistics, Violation
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result
from veriformer.verify.results.finding import Finding, likewise
from veriformer.verify.targets.target import Target

Gather = Callable[[CheckRun, Sequence[Condition]], tuple[int, RunStatistics]]
"""New examples of a row, those left out that meet a condition: how many there are, and what they come to together."""

_FEWEST = 5
"""Examples from which a row is said to hold."""

CONVENTION = "choice.ties"

_WITNESS_OF_TIES = "torch.topk"
"""Function of PyTorch that promises no order among equal entries; neither does ``torch.sort`` unless asked to be
stable."""

_SAID_OF_TIES = "of equal scores others are chosen than those that come first"

MODIFIED = "was modified"
"""End of the message of a violation about a modified argument."""


def explained_by(row: CheckRun, causes: Sequence[Cause], gather: Gather) -> Cause | None:
    """Return the cause of wrong results without whose calls a failing row holds; None where there is none."""
    candidates = list(_candidates(causes))
    if not candidates or _holds(row, gather, ()) is not False:
        return None
    always = next((cause for cause in candidates if cause.condition.always), None)
    return always or next((cause for cause in candidates if _holds(row, gather, [cause.condition])), None)


def _candidates(causes: Sequence[Cause]) -> Iterator[Cause]:
    for cause in causes:
        if cause.confirmed and wrong_result(cause.signature) and not cause.condition.requirement:
            yield cause


def _holds(row: CheckRun, gather: Gather, without: Sequence[Condition]) -> bool | None:
    """Return whether the row holds without some calls; None where too few examples tell."""
    assert row.check.finish is not None
    examples, together = gather(row, without)
    try:
        row.check.finish(together)
    except Violation:
        return False
    return True if examples >= _FEWEST else None


def by_ties(results: Sequence[Result], every: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """Split rows into those that a claim about ties settles and the others.

    every: all failed rows. Where the claim settles some of them, the row on the order of equal scores, which is not run
    under the claim, counts among the settled.
    """
    claimed = any(map(_settled_by_ties, every))
    settled = [row for row in results if _settled_by_ties(row) or (claimed and row.requirement.endswith(".ties"))]
    return settled, [row for row in results if row not in settled]


def _settled_by_ties(row: Result) -> bool:
    return row.suggestion is not None and row.suggestion["convention"] == CONVENTION


def of_rows(cause: Cause, results: Sequence[Result]) -> Cause:
    """Return the cause restricted to the examples of these rows; unchanged where there are none."""
    keys = {row.key for row in results}
    mine = tuple(example for example in cause.explained if example.row.key in keys)
    return replace(cause, explained=mine or cause.explained)


def of_ties(found: Finding) -> Finding:
    """Return the finding of such rows: a confirmed weakness on degenerate input, shared by PyTorch's own operator."""
    weight = found.weight if found.weight.advice else Weight.WEAKNESS
    return replace(
        found,
        id=f"{found.operation}-ties",
        weight=weight,
        what=f"{found.operation}: {_SAID_OF_TIES}{likewise(_WITNESS_OF_TIES)}",
        when="with ties",
        confirmed=True,
        fix=STABLE,
        witness=_WITNESS_OF_TIES,
    )


class OnCopies:
    """An implementation each of whose operations gets a clone of every tensor, on the same graph."""

    def __init__(self, implementation: object) -> None:
        self._implementation = implementation

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._implementation, name)
        return _on_copies(found) if callable(found) else found


def _on_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*positional: Any, **options: Any) -> Any:
        return function(*map(_copy, positional), **{name: _copy(value) for name, value in options.items()})

    return call


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(_copy(item) for item in value)
    return value


_CERTAIN = 0.05
"""A factor is told where it is known to this share."""

_ENTRIES = 3
"""Some call has so many entries at least: of fewer, most things are a multiple."""


@dataclass(frozen=True)
class _Factor:
    """A multiple: its value, its uncertainty from rounding on both sides, and the number of entries."""

    value: float
    error: float
    entries: int


def factor(cause: Cause, target: Target) -> str | None:
    """Return in words the factor by which the result or a gradient is wrong in every call; None without one."""
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
    """Yield the factor of each wrong part that the cause is about; None where the part is no multiple of the exact."""
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


PARTS = {"cached_attention": "kv_cache"}
"""By operation, the one of the same implementation whose results it works on."""


class _WithPart:
    """An implementation with one operation exchanged for a sound one."""

    def __init__(self, implementation: object, name: str, sound: Any) -> None:
        self._implementation = implementation
        setattr(self, name, sound)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._implementation, name)


def with_sound_part(operation: str, target: Target) -> Target | None:
    """Return the target over a correct version of the operation that this one calls; None where it calls none."""
    part = PARTS.get(operation)
    theirs = None if part is None or isinstance(target.implementation, nn.Module) else target.operation(part)
    if part is None or theirs is None:
        return None
    sound = getattr(importlib.import_module("veriformer.verify.targets.impl").reference, part)
    shown = functools.wraps(theirs)(lambda *given, **options: sound(*given, **options))  # nothing more is asked of it
    return replace(target, implementation=_WithPart(target.implementation, part, shown))
