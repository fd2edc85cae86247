"""Constants that a signature hides, estimated from results: the usual values first, then by inverting the formula."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from veriformer.spec.arithmetic import Float
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Choice, Number, Pair
from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.domain.sample import Sample, all_fit
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.targets.target import Target

USUAL: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    name: {
        key: one.usual for key, one in record.arguments.items() if isinstance(one, Number | Pair | Choice) and one.usual
    }
    for name, record in OPERATIONS.items()
}
"""By operation and argument, what is usual where a signature has no such argument."""

STATED: Mapping[str, tuple[str, ...]] = {"cross_entropy": ("label_smoothing", "reduction")}
"""By operation, the arguments that code may leave out with a default of its own, which is read off the signature and
never measured: a sum where the contract has the mean is a fault of code that does not say so."""

NO_OTHERS = frozenset({"sinusoidal_encoding"})
"""Operations whose published formula states the number: a base that is none of the usual ones is a wrong exponent,
for 10000^(2x) is (10⁸)^x. Rotary models do change theirs, up to that value."""

SMALL: Mapping[str, str] = {
    name: next(iter(record.tensors), "grads") for name, record in OPERATIONS.items() if "eps" in record.arguments
}
"""The argument that must be small for an epsilon to show."""

SCALES = (1.0, 2.0**-7, 2.0**-14, 2.0**-20)
_TURNS = 25


class Unadmitted(Exception):
    """Failed measurement: no admissible number alone explains the results; the message says why."""


def hidden(target: Target, operation: str) -> tuple[str, ...]:
    """Return the constants of an operation that no signature shows, or with another default there."""
    known = target.hides(operation)
    return (*(name for name in USUAL.get(operation, {}) if name in known), *stated_defaults(target, operation))


def stated_defaults(target: Target, operation: str) -> dict[str, Any]:
    """Return the defaults of the code's own among the arguments of ``STATED``."""
    shown = target.shows(operation) if operation in STATED else {}
    return {name: shown[name] for name in STATED.get(operation, ()) if name in shown}


def scale_down(operation: str, arguments: Arguments, scale: float) -> Arguments:
    """Return the call's arguments with smaller numbers where an epsilon is added."""
    name = SMALL[operation]
    given = arguments[name]
    smaller = [x * scale for x in given] if isinstance(given, list) else given * scale
    return {**arguments, name: smaller}


def with_smaller(
    operation: OpInfo, samples: Sequence[Sample], answer: Callable[[Trial, Arguments], Outcome | None]
) -> list[Sample]:
    """Return the calls, and where an epsilon would not show otherwise, further ones with smaller numbers."""
    found = list(samples)
    if operation.name in SMALL:
        for sample, scale in itertools.product(samples[:2], SCALES[1:]):
            arguments = scale_down(operation.name, sample.arguments, scale)
            outcome = answer(sample.trial, arguments)  # its options are those of a call that was answered
            found += [] if outcome is None else [Sample(sample.trial, arguments, outcome)]
    return found


def estimate_constants(
    operation: OpInfo,
    names: Sequence[str],
    samples: Sequence[Sample],
    judged_by: str,
    said: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Return the values by which every result is right in this format; None where there are none.

    said: what the signature says, which is taken as it is. Raises Unadmitted for a number that is none of a constant.
    """
    usual = USUAL.get(operation.name, {})
    options = [(said[name],) if name in said else _contract_first(operation.name, name, usual[name]) for name in names]
    for values in _combinations(options):
        constants = dict(zip(names, values, strict=True))
        if all_fit(samples, operation, judged_by, constants):
            return constants
    numbers = len(names) == 1 and isinstance(usual[names[0]][0], float) and not said
    if operation.name not in NO_OTHERS and numbers:
        return _invert(operation, names[0], samples, judged_by)
    return None


def _contract_first(operation: str, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((OPTIONAL[operation][name], *values)))


def _combinations(values: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    return itertools.product(*values)


def _invert(operation: OpInfo, name: str, samples: Sequence[Sample], judged_by: str) -> dict[str, Any] | None:
    """Return a positive constant by Newton's method on its logarithm, rounded to as few digits as the results allow.

    It is fitted to every other call, and must explain those between as well.
    """
    residual = _residual(operation, name, samples[::2])
    starts = [value for value in USUAL[operation.name][name] if value > 0]
    start = min(starts, key=lambda value: float(np.abs(residual(math.log(value))).max(initial=0.0)))
    theta, step = math.log(start), 1e-6
    for _ in range(_TURNS):
        here = residual(theta)
        slope = (residual(theta + step) - here) / step
        power = float(slope @ slope)
        if not math.isfinite(power) or power == 0.0:
            return None
        theta -= max(-2.0, min(2.0, float(slope @ here) / power))
    for digits in range(1, 9):
        constants = {name: float(f"{math.exp(theta):.{digits - 1}e}")}
        if all_fit(samples, operation, judged_by, constants):
            _assert_identifiable(operation, name, constants, samples, judged_by)
            return _admit(operation, name, constants)
    return None


def _assert_identifiable(
    operation: OpInfo, name: str, constants: Mapping[str, Any], samples: Sequence[Sample], judged_by: str
) -> None:
    """Raise Unadmitted where half or twice the number explains every result as well."""
    for other in (0.5 * constants[name], 2 * constants[name]):
        if _in_range(operation, name, other) and all_fit(samples, operation, judged_by, {name: other}):
            raise Unadmitted(f"{name}: {constants[name]:g} and {other:g} both explain its results")


def _admit(operation: OpInfo, name: str, constants: dict[str, Any]) -> dict[str, Any]:
    """Return the constants; raise Unadmitted for a size of the code that fits as an epsilon."""
    if not _in_range(operation, name, constants[name]):
        raise Unadmitted(f"{name}: {constants[name]:g} alone explains its results, which is no {name}")
    return constants


def _in_range(operation: OpInfo, name: str, value: float) -> bool:
    """Return whether a number lies where the record's values of practice may lie."""
    argument = OPERATIONS[operation.name].arguments[name]
    return not isinstance(argument, Number) or argument.between[0] <= value <= argument.between[1]


def _residual(operation: OpInfo, name: str, samples: Sequence[Sample]) -> Callable[[float], Any]:
    """Return a function from log(constant) to the distances of all results from the formula, in float64."""
    return lambda theta: _distances(operation, {name: math.exp(theta)}, samples)


def _distances(operation: OpInfo, constants: Mapping[str, Any], samples: Sequence[Sample]) -> Any:
    """Return the differences between the formula with these constants and the results, in float64, flattened."""
    xp, found = Float(), []
    for sample in samples:
        lifted = {**constants} | sample.trial.lift(sample.arguments, xp)
        lifted |= operation.convention_kwargs(sample.trial.claims)
        exact = operation.formulas[0](xp, lifted)
        parts = operation.parts(sample.outcome, sample.arguments)
        found += [
            (np.asarray(e.value, dtype=np.float64) - array(p.value)).ravel()
            for e, p in zip(exact, parts, strict=True)
            if isinstance(p.value, torch.Tensor)
        ]
    return np.concatenate(found) if found else np.zeros(0)


def nearest(operation: OpInfo, names: Sequence[str], samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the constants that are words, such as an activation, for which the results' error is least, if none fits.

    Numbers are left out: the effect of a small one is lost in the error.
    """
    usual = USUAL.get(operation.name, {})
    words = [name for name in names if name in usual and isinstance(usual[name][0], str)]
    ways = _combinations([_contract_first(operation.name, name, usual[name]) for name in words]) if words else iter(())
    choices = [dict(zip(words, values, strict=True)) for values in ways]

    def apart(constants: dict[str, Any]) -> float:
        with np.errstate(all="ignore"):
            found = float((_distances(operation, constants, samples) ** 2).sum())
        return found if math.isfinite(found) else math.inf

    return min(choices, key=apart, default={})
