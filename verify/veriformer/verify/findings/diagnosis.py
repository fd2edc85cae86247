"""Diagnoses: ignored options, and faults that public code once had.

The known faults are those of the mutants. Where one of them, or two together, gives what the target gives on the calls
that fail and on those that do not, it is the fault.
"""

from __future__ import annotations

import importlib  # every faulty implementation there is: found by name, and only where something fails
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.contract.features import feature
from veriformer.verify.contract.features.making import article, number
from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.domain.constants import USUAL, hidden
from veriformer.verify.findings.calls import (
    APART,
    Case,
    around,
    as_finite,
    cases,
    finite,
    furthest,
    outcome,
    references,
    wrong_number,
)
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.evidence import Example, passing
from veriformer.verify.judging.judge import Floats, Reference
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.target import Target

_ORDINARY = (1.75, 0.5, 1, 2, 3)
"""Values of which some make a difference, unless the option is ignored."""


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis in words, and where public code had the fault.

    faulty: an implementation with that fault and no other. ignored: whether an option is ignored; condition: the value
    for which it is not, where it is for others. fix: the correction, in words.
    """

    what: str
    fix: str
    precedents: tuple[str, ...] = ()
    faulty: object = None
    ignored: bool = False
    condition: Condition | None = None


def diagnose(cause: Cause, evidence: Sequence[Example], target: Target) -> Diagnosis | None:
    """Return the diagnosis of a cause: an ignored option or a known bug; None where neither explains it."""
    made = (case for case in cases(cause.explained, target) if finite(case.given))
    failed = [case for case in made if furthest(case.given, case.exact) > APART]
    if not failed:
        return None
    formats = {case.row.dtype for case in failed}
    alike = [one for one in passing(evidence) if one.row.dtype in formats and _plain(one.row)]
    held = cases(alike, target)
    option = ignored_option(cause.condition, failed, held, target)
    if option is not None:
        return Diagnosis(option.what, option.fix, ignored=True, condition=option.condition)
    found, left = _known(cause, failed, held, target), len(failed)
    for hiding in (dtypes.HALVES, {*dtypes.HALVES, "fp64"}):
        # In half precision its own rounding may hide which fault it is, in double precision tables in a narrower one.
        told, others = _without(failed, hiding), _without(held, hiding)
        if found is None and 0 < len(told) < left:
            found, left = _known(cause, told, others, target), len(told)
    return found


def _without(cases: Sequence[Case], formats: Collection[str]) -> list[Case]:
    return [case for case in cases if case.row.dtype not in formats]


def _plain(row: CheckRun) -> bool:
    return row.check.requirement.slug.endswith((".equation", ".gradient"))


def _known(cause: Cause, failed: Sequence[Case], held: Sequence[Case], target: Target) -> Diagnosis | None:
    """Return the known fault, or two combined, that reproduces the target's results.

    NaN and infinities are equal whatever they come from: there must be wrong numbers as well.
    """
    if not any(wrong_number(case) for case in failed):
        return None
    operation = cause.condition.operation
    mutants, combinators = (
        importlib.import_module(f"veriformer.verify.mutants{name}") for name in ("", ".combinators")
    )
    known = [(one, one.faults[operation]) for one in mutants.MUTANTS if operation in one.faults]
    every = [
        (chosen, SimpleNamespace(**{operation: combinators.faulty(operation, fault)}))
        for chosen, fault in _combined(known, combinators.both)
    ]
    for said, read in _constants(target, operation):
        for chosen, faulty in every:
            if all(_reproduces(faulty, case, read) for case in (*failed, *held)):
                words = " and ".join(mutant.title[0].lower() + mutant.title[1:] for mutant in chosen)
                links = tuple(dict.fromkeys(mutant.link for mutant in chosen))
                fix = f"compute it as the formula has it, as was done in {links[0]}"
                return Diagnosis(words + said, fix, links, faulty)
    return None


def _constants(target: Target, operation: str) -> Iterator[tuple[str, Target]]:
    """Yield the target with its measured constants, then with each usual value of a constant that its signature hides.

    The constant was measured by the right formula, and a wrong formula may have another. Each comes with its words.
    """
    yield "", target
    domain, names = target.domain(operation), hidden(target, operation)
    for value in USUAL[operation][names[0]] if len(names) == 1 else ():
        if domain.constants.get(names[0]) != value:
            read = {**target.domains, operation: replace(domain, constants={**domain.constants, names[0]: value})}
            yield f", with {names[0]} = {value:g}" if isinstance(value, float) else "", replace(target, domains=read)


def _combined(
    known: Sequence[tuple[Any, Any]], both: Callable[[Any, Any], Any]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every fault alone, then every two that combine."""
    yield from (((mutant,), fault) for mutant, fault in known)
    for (one, fault), (two, other) in combinations(known, 2):
        together = both(fault, other)
        if together is not None:
            yield (one, two), together


def _reproduces(faulty: object, case: Case, target: Target) -> bool:
    """Return whether a fault reproduces the target's results and, where these are wrong, some of the wrong entries.

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
    return furthest(case.given, case.exact) <= APART or furthest(case.given, told) > APART


def _where_told(exact: Reference, given: Floats, case: Floats) -> Reference:
    """Return the reference with an infinite bound at entries where the fault alone has no value."""
    return Reference(exact.exact, np.where(np.isfinite(case) & ~np.isfinite(given), np.inf, exact.bound))


@dataclass(frozen=True)
class _IgnoredOption:
    """Fault and change in words, and its condition where only one value is affected."""

    what: str
    fix: str
    condition: Condition | None = None


def ignored_option(
    condition: Condition, failed: Sequence[Case], held: Sequence[Case], target: Target
) -> _IgnoredOption | None:
    """Return the option that every failing call ignores: results without it are bitwise equal, and right without it.

    A result that is wrong with and without it, such as 0 after an overflow, is no evidence about the option. Nor are
    NaN and infinities, which are equal whatever they come from: there must be wrong numbers as well.
    """
    if not any(wrong_number(case) for case in failed):
        return None
    for name in OPTIONAL.get(condition.operation, {}):
        if all(_given(name, case.call) and _same_without(name, case, target) for case in failed):
            if not any(_right_without(name, case, target) for case in failed):
                continue
            if not _matters(name, failed, held, target):
                return _IgnoredOption(f"{name} is ignored", f"use {name} where the result is computed")
            return _not_given(name, condition, failed)
    return None


def _not_given(name: str, condition: Condition, failed: Sequence[Case]) -> _IgnoredOption | None:
    """Return the one value, or kind of values, that is treated as absent; None where the calls have none in common."""
    values = [case.call.arguments[name] for case in failed]
    if all(number(value) and value == values[0] for value in values):
        told = f"{article(name)} of {values[0]:g}"
        known = feature(condition.operation, told) is not None
        one = Condition(condition.operation, (told,)) if known else None
        return _IgnoredOption(f"{told} is taken as not given", _asked_by_none(name, told), one)
    part = next((part for part in condition.names if name in part.split()), None)
    return None if part is None else _IgnoredOption(f"{part} is taken as not given", _asked_by_none(name, part))


def _asked_by_none(name: str, told: str) -> str:
    return f"ask whether {name} is None, not whether it is true: {told} is given"


def _given(name: str, call: Recorded) -> bool:
    """Return whether a call has an option with a value other than its default."""
    if name not in call.arguments:
        return False
    value, default = call.arguments[name], OPTIONAL[call.operation][name]
    return isinstance(value, torch.Tensor) or not (value is None or (type(value) is type(default) and value == default))


def _matters(name: str, failed: Sequence[Case], held: Sequence[Case], target: Target) -> bool:
    """Return whether some other value of the option makes a difference."""
    if any(_given(name, case.call) and not _same_without(name, case, target) for case in held):
        return True
    first = failed[0]
    return number(first.call.arguments[name]) and any(_differs(first, name, value, target) for value in _ORDINARY)


def _differs(case: Case, name: str, value: float, target: Target) -> bool:
    other = _again(case, {**case.call.arguments, name: value}, target)
    return other is not None and not _same(other, case)


def _same_without(name: str, case: Case, target: Target) -> bool:
    left = {key: value for key, value in case.call.arguments.items() if key != name}
    given = _again(case, left, target)
    return given is not None and _same(given, case)


def _right_without(name: str, case: Case, target: Target) -> bool:
    """Return whether a call's outcome equals the reference for the call without an option; True where there is no
    reference."""
    left = {key: value for key, value in case.call.arguments.items() if key != name}
    expected = references(case.row, target, replace(case.call, arguments=left))
    return expected is None or furthest(case.given, expected) <= 1.0


def _again(case: Case, arguments: dict[str, Any], target: Target) -> Any:
    return outcome(case.row, target.implementation, target, replace(case.call, arguments=arguments))


def _same(given: Any, case: Case) -> bool:
    return all(np.array_equal(given[key], case.given[key], equal_nan=True) for key in case.given)
