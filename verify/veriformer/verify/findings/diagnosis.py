"""What is wrong by name: an option that is not heard, or a fault that public code once had.

The known faults are those of the mutants: correct implementations by stages with one stage exchanged. Where one of
them, or two on the same base, gives what the target gives on the calls that fail and on those that do not, it is the
fault.
"""

from __future__ import annotations

import importlib  # every faulty implementation there is: found by name, and only where something fails
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.engine.row import Row
from veriformer.verify.findings.calls import Parts, around, as_finite, finite, furthest, judged, outcome, references
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.evidence import Example, passing
from veriformer.verify.judging.judge import Floats, Reference
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.target import Target

_CALLS = 12
"""Calls that fail, and as many that hold, on which a fault must give what the target gives."""

_APART = 3.0
"""Errors in units of the bound from which agreeing with a fault within two bounds tells it from what is right."""


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, in words, and where public code had it.

    faulty: an implementation with that fault and no other.
    """

    what: str
    precedents: tuple[str, ...] = ()
    faulty: object = None


@dataclass(frozen=True)
class _Case:
    """A call, what the target gave and what is right."""

    row: Row
    call: Recorded
    given: Parts
    exact: Mapping[str, Reference]


def diagnose(cause: Cause, evidence: Sequence[Example], target: Target) -> Diagnosis | None:
    """The name of a cause, or None where nothing known explains it."""
    cases = (case for case in _cases(cause.explained, target) if finite(case.given))
    failed = [case for case in cases if furthest(case.given, case.exact) > _APART]
    if not failed:
        return None
    formats = {case.row.dtype for case in failed}
    alike = [one for one in passing(evidence) if one.row.dtype in formats and _plain(one.row)]
    return _unheard(cause, failed, target) or _known(cause, failed, _cases(alike, target), target)


def _plain(row: Row) -> bool:
    return row.check.requirement.slug.endswith((".equation", ".gradient"))


def _cases(examples: Sequence[Example], target: Target) -> list[_Case]:
    """Examples that were judged by the formula, small and large, each repeated."""
    by_size = sorted((one for one in examples if judged(one) is not None), key=lambda one: one.size)
    found: list[_Case] = []
    for example in by_size[:: max(1, len(by_size) // _CALLS)]:
        call = judged(example)
        given = None if call is None else outcome(example.row, target.implementation, target, call)
        exact = None if call is None or given is None else references(example.row, target, call)
        if call is not None and given is not None and exact:
            found.append(_Case(example.row, call, given, exact))
        if len(found) == _CALLS:
            break
    return found


def _unheard(cause: Cause, failed: Sequence[_Case], target: Target) -> Diagnosis | None:
    """An option without which every failing call gives bit by bit the same, though it ought not to."""
    for name in OPTIONAL.get(cause.condition.operation, {}):
        if all(_given(name, case.call) and _same_without(name, case, target) for case in failed):
            told = next((part for part in cause.condition.names if name in part.split()), name)
            whole = told in (name, f"a {name}", f"an {name}")
            return Diagnosis(f"{told} is {'ignored' if whole else 'taken as not given'}")
    return None


def _given(name: str, call: Recorded) -> bool:
    """Whether a call has an option and says by it more than leaving it out would."""
    if name not in call.arguments:
        return False
    value, default = call.arguments[name], OPTIONAL[call.operation][name]
    return isinstance(value, torch.Tensor) or not (value is None or (type(value) is type(default) and value == default))


def _same_without(name: str, case: _Case, target: Target) -> bool:
    left = {key: value for key, value in case.call.arguments.items() if key != name}
    given = outcome(case.row, target.implementation, target, replace(case.call, arguments=left))
    return given is not None and all(np.array_equal(given[key], case.given[key], equal_nan=True) for key in case.given)


def _known(cause: Cause, failed: Sequence[_Case], held: Sequence[_Case], target: Target) -> Diagnosis | None:
    """The known fault, or the two, that give what the target gives.

    NaN and infinities are alike whatever they come from: there must be wrong numbers as well.
    """
    if not any(_wrong_number(case) for case in failed):
        return None
    operation = cause.condition.operation
    mutants, front = (importlib.import_module(f"veriformer.verify.{name}") for name in ("mutants", "targets.front"))
    known = [(one, one.kernels[operation]) for one in mutants.MUTANTS if operation in one.kernels]
    for chosen, kernel in _combined(known):
        faulty = front.dress(**{operation: kernel})
        if all(_reproduces(faulty, case, target) for case in (*failed, *held)):
            words = " and ".join(mutant.title[0].lower() + mutant.title[1:] for mutant in chosen)
            return Diagnosis(words, tuple(dict.fromkeys(mutant.link for mutant in chosen)), faulty)
    return None


def _wrong_number(case: _Case) -> bool:
    """Whether a call gives a finite number that is wrong."""
    return furthest(case.given, {key: _where_finite(x, case.given[key]) for key, x in case.exact.items()}) > _APART


def _where_finite(exact: Reference, given: Floats) -> Reference:
    return Reference(exact.exact, np.where(np.isfinite(given), exact.bound, np.inf))


def _combined(known: Sequence[tuple[Any, Any]]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every fault alone, then every two that exchange different stages of one base."""
    yield from (((mutant,), kernel) for mutant, kernel in known)
    for (one, kernel), (two, other) in combinations(known, 2):
        if is_dataclass(kernel) and type(kernel) is type(other):
            mine, theirs = _exchanged(kernel), _exchanged(other)
            if mine and theirs and not mine.keys() & theirs.keys():
                yield (one, two), replace(kernel, **theirs)  # type: ignore[type-var]


def _exchanged(kernel: Any) -> dict[str, Any]:
    """The stages of a base that a fault has replaced."""
    base = type(kernel)()
    return {f.name: getattr(kernel, f.name) for f in fields(kernel) if getattr(kernel, f.name) != getattr(base, f.name)}


def _reproduces(faulty: object, case: _Case, target: Target) -> bool:
    """Whether a fault gives what the target gives, and, where that is wrong, gives some of what is wrong.

    Another implementation of the same fault may have no value where the target has one, as a derivative of √0: there
    it says nothing.
    """
    given = outcome(case.row, faulty, target, case.call)
    if given is None or not as_finite(given, case.given):
        return False
    expected = around(given, case.exact)
    if furthest(case.given, expected) > 1.0:
        return False
    told = {key: _where_told(x, given[key], case.given[key]) for key, x in case.exact.items()}
    return furthest(case.given, case.exact) <= _APART or furthest(case.given, told) > _APART


def _where_told(exact: Reference, given: Floats, case: Floats) -> Reference:
    """What is right, with nothing to be said of entries where the fault alone has no value."""
    return Reference(exact.exact, np.where(np.isfinite(case) & ~np.isfinite(given), np.inf, exact.bound))
