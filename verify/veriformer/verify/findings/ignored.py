"""An option that is ignored: whatever its value, or one value of it that is taken as not given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract.features import feature
from veriformer.verify.contract.features.making import article, number
from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.findings.calls import Case, furthest, outcome, references, wrong_number
from veriformer.verify.findings.condition import Condition
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.target import Target

_ORDINARY = (1.75, 0.5, 1, 2, 3)
"""Values of which some make a difference, unless the option is ignored."""


@dataclass(frozen=True)
class IgnoredOption:
    """In words, what to change, and the condition of which the words speak where it is one value only."""

    what: str
    fix: str
    condition: Condition | None = None


def ignored_option(
    condition: Condition, failed: Sequence[Case], held: Sequence[Case], target: Target
) -> IgnoredOption | None:
    """The option without which every failing call gives bit by bit the same, which is right of a call without it.

    A result that is wrong with and without it, such as 0 after an overflow, says nothing of the option. Nor do NaN and
    infinities, which are alike whatever they come from: there must be wrong numbers as well.
    """
    if not any(wrong_number(case) for case in failed):
        return None
    for name in OPTIONAL.get(condition.operation, {}):
        if all(_given(name, case.call) and _same_without(name, case, target) for case in failed):
            if not any(_right_without(name, case, target) for case in failed):
                continue
            if not _matters(name, failed, held, target):
                return IgnoredOption(f"{name} is ignored", f"use {name} where the result is computed")
            return _not_given(name, condition, failed)
    return None


def _not_given(name: str, condition: Condition, failed: Sequence[Case]) -> IgnoredOption | None:
    """The one value, or the kind of values, that is taken as not given; None where they have nothing in common."""
    values = [case.call.arguments[name] for case in failed]
    if all(number(value) and value == values[0] for value in values):
        told = f"{article(name)} of {values[0]:g}"
        known = feature(condition.operation, told) is not None
        one = Condition(condition.operation, (told,)) if known else None
        return IgnoredOption(f"{told} is taken as not given", _asked_by_none(name, told), one)
    part = next((part for part in condition.names if name in part.split()), None)
    return None if part is None else IgnoredOption(f"{part} is taken as not given", _asked_by_none(name, part))


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
