"""Recorded calls, repeated: results of the target, of the spec, and of another implementation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.findings.evidence import Example
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.judge import Floats, Reference, ratios
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.trial import Trial
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.target import Target

RECORDS: Mapping[str, OpInfo] = {operation.name: operation for operation in OPERATIONS}

APART = 3.0
"""Errors in units of the bound from which agreeing with a fault within two bounds tells it from what is right."""

CALLS = 12
"""Maximum number of calls of a kind that are made again."""

Parts = dict[str, Floats]
"""Results and gradients by name, as float64 arrays."""


@dataclass(frozen=True)
class Case:
    """A call, the target's result and the exact one."""

    row: CheckRun
    call: Recorded
    given: Parts
    exact: Mapping[str, Reference]


def judged(example: Example) -> Recorded | None:
    """Return the example's last call if the formula judged its result or gradient; None otherwise."""
    about = example.signature.about if example.signature else "result"
    if not example.recorded or not about.startswith(("result", "gradient of ")):
        return None
    call = example.recorded[-1]
    return call if has_formula(call) else None


def cases(examples: Sequence[Example], target: Target) -> list[Case]:
    """Repeat examples that were judged by the formula, small and large; return each with its exact values."""
    by_size = sorted((one for one in examples if judged(one) is not None), key=lambda one: one.size)
    found: list[Case] = []
    for example in by_size[:: max(1, len(by_size) // CALLS)]:
        call = judged(example)
        given = None if call is None else outcome(example.row, target.implementation, target, call)
        exact = None if call is None or given is None else references(example.row, target, call)
        if call is not None and given is not None and exact:
            found.append(Case(example.row, call, given, exact))
        if len(found) == CALLS:
            break
    return found


def has_formula(call: Recorded) -> bool:
    """Return whether the formula determines the result of a call."""
    record = RECORDS.get(call.operation)
    return record is not None and bool(record.formulas) and call.refusal is None


def outcome(row: CheckRun, implementation: object, target: Target, call: Recorded) -> Parts | None:
    """Return an implementation's result and gradients for a call; None where it raises or gives no tensors.

    Any other than the target's is given the constants that were measured on the target.
    """
    trial = _trial(row, replace(target, implementation=implementation))
    record = RECORDS[call.operation]
    constants = {} if implementation is target.implementation else target.domain(call.operation).constants
    arguments = {**constants, **call.arguments}
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            got = trial.call(arguments, wrt=call.wrt, cotangent=call.cotangent, operation=call.operation)
            parts = {f"result {i}": array(x.value) for i, x in enumerate(record.parts(got, call.arguments))}
    except Exception:
        return None
    return parts | {f"gradient of {name}": array(value) for name, value in got.gradients.items()}


def references(row: CheckRun, target: Target, call: Recorded) -> dict[str, Reference] | None:
    """Return the spec's references for a call, by the names of ``outcome``; None where it has none."""
    trial, record = _trial(row, target), RECORDS[call.operation]
    try:
        found = {f"result {i}": x for i, x in enumerate(record.exact(trial, call.arguments, use_exact_oracle=False))}
        if call.wrt and call.cotangent is not None:
            exact = record.exact_gradients(trial, call.arguments, call.cotangent, use_exact_oracle=False)
            found |= {f"gradient of {name}": exact[name] for name in call.wrt}
    except Exception:
        return None
    return found


def furthest(parts: Parts, expected: Mapping[str, Reference]) -> float:
    """Return the largest ratio of error to bound over all parts; infinity where shapes differ."""
    if parts.keys() < expected.keys() or any(parts[key].shape != expected[key].exact.shape for key in expected):
        return np.inf
    return max((float(ratios(parts[key], expected[key]).max(initial=0.0)) for key in expected), default=0.0)


def finite(parts: Parts) -> bool:
    """Return whether every part has a finite entry: any implementation could give a part without one."""
    return all(np.isfinite(x).any() or not x.size for x in parts.values())


def wrong_number(case: Case) -> bool:
    """Return whether a call gives a finite number that is wrong."""
    return furthest(case.given, {key: _where_finite(x, case.given[key]) for key, x in case.exact.items()}) > APART


def _where_finite(exact: Reference, given: Floats) -> Reference:
    return Reference(exact.exact, np.where(np.isfinite(given), exact.bound, np.inf))


def as_finite(one: Parts, other: Parts) -> bool:
    """Return whether an outcome is NaN, or infinite of a sign, wherever another one is."""
    return one.keys() == other.keys() and all(
        x.shape == other[key].shape and bool((np.isfinite(other[key]) | (_beyond(x) == _beyond(other[key]))).all())
        for key, x in one.items()
    )


def _beyond(x: Floats) -> Floats:
    return np.where(np.isnan(x), 2.0, np.where(np.isinf(x), np.sign(x), 0.0))


def around(parts: Parts, expected: Mapping[str, Reference]) -> dict[str, Reference]:
    """Return references centred on another implementation's outcome, with twice the bounds, for that was rounded as
    well, and wider in proportion where the outcome is larger than the exact value."""
    return {
        key: _about(parts[key], expected[key])
        for key in expected
        if key in parts and parts[key].shape == expected[key].exact.shape
    }


def _about(given: Floats, expected: Reference) -> Reference:
    values, size = np.nan_to_num(given), np.abs(expected.exact).max(initial=0.0)
    widest = np.where(np.isfinite(expected.bound), expected.bound, 0.0).max(initial=0.0)
    bound = 2 * (expected.bound + np.abs(values) * (widest / size if size else 0.0))
    return Reference(values, np.where(np.isfinite(given), bound, np.inf))


def _trial(row: CheckRun, target: Target) -> Trial:
    nothing = cast(st.DataObject, cast(Any, None))
    return Trial(target, row.check.operation, row.check.positional, row.dtype, row.device, nothing)
