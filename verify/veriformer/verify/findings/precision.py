"""Faults of a dtype: failing calls repeated in another one; a failure that vanishes is one of rounding or range.

Overflow in half precision, which operations share that form a large intermediate result, is told once for all.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.findings.calls import furthest, has_formula, judged, outcome, references
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.evidence import Example, Failing
from veriformer.verify.findings.sentence import WIDER
from veriformer.verify.findings.survey import again
from veriformer.verify.judging.judge import Floats
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results.finding import Finding, likewise, together
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.target import Target

WORDS = "overflow in half precision: what is finite comes out as infinite, NaN or 0"

_LOST = re.compile(r"observed (?:nan|-?inf|-?0(?![.\d]))|not finite")
_OF_SIZES = re.compile(r"with (?:large|huge) values")
_SIZES = (
    *("large values in ", "huge values in ", "tiny values in ", "subnormal values in "),
    *("constant rows of ", "a mean of "),
)
"""Prefixes of the features of calls whose intermediate results may leave the range of half precision: squares and
products of extreme entries, powers of a spread that is nearly 0."""


def lost(example: Example) -> bool:
    """Return whether a finite result came out as infinite, NaN or 0."""
    known = example.signature
    return known is not None and known.kind is not Failing.RAISES and bool(_LOST.search(example.message))


def near_the_edge(call: frozenset[str]) -> bool:
    """Return whether a call is of finite values whose squares or products may leave the range of half precision."""
    finite = not any(name.startswith(("NaN in", "inf in", "-inf in")) for name in call)
    return finite and any(name.startswith(_SIZES) for name in call)


def overflows(finding: Finding) -> bool:
    """Return whether a finding is about a finite result of finite input in half precision that is lost."""
    if WORDS in finding.what:
        return True
    ranges = finding.requirements and all(slug.endswith(".range") for slug in finding.requirements)
    halves = finding.dtypes and set(finding.dtypes) <= set(dtypes.HALVES)
    return bool(
        finding.weight in (Weight.FRAGILE, Weight.WEAKNESS)
        and ranges
        and halves
        and _LOST.search(finding.message or "")
    )


def told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, those of overflow in half precision as one for each weight."""
    listed = list(findings)
    found: dict[Weight, list[Finding]] = {}
    for finding in filter(overflows, listed):
        found.setdefault(finding.weight, []).append(finding)
    return [*(one for one in listed if not overflows(one)), *map(_of, found.values())]


def _of(found: Sequence[Finding]) -> Finding:
    """Merge findings into one. When it happens is told where values are why; that rows are long is not."""
    first, *others = found
    operations = ", ".join(dict.fromkeys(finding.operation for finding in found))
    when = first.when if not others and _OF_SIZES.search(first.when or "") else None
    return replace(
        first,
        id=first.id if not others else hashlib.sha256("|".join(one.id for one in found).encode()).hexdigest()[:8],
        operation=operations,
        what=f"{operations}: {WORDS}{likewise(first.witness)}",
        when=when,
        confirmed=all(finding.confirmed for finding in found),
        fix=WIDER if all(finding.confirmed for finding in found) else None,
        **together(found),
    )


COARSER = "is computed in float32 where it is asked for in float64"

ROUNDED = "loses more digits to rounding than the formula does"

_FULL = ("fp64", "fp32")
_CALLS = 6
"""Calls of a cause that are made again."""


def explain_by_precision(cause: Cause, target: Target) -> str | None:
    """Return the name of a cause that is a fault of a format, not of the mathematics; None where it is no such cause.

    Half precision leaves its range, by calls near the edge of it or calls that float32 shows to be right. Rounding
    errors are smaller in float64 than in float32 as its roundoff is, those of another formula are not; the verdict of
    float32 and float64 holds for half precision as well where the same fails there.
    """
    if all(one.row.dtype in dtypes.HALVES and lost(one) for one in cause.explained):
        inside = [one for one in cause.explained if not any(map(near_the_edge, one.calls))]
        formula = [one for one in inside if judged(one) is not None]  # of laws without one, what it tells of others
        told = formula or len(inside) < len(cause.explained)
        return WORDS if told and all(_right_in_float32(one, target) for one in _smallest(formula)) else None
    single, double = ([one for one in cause.explained if one.row.dtype == dtype] for dtype in ("fp32", "fp64"))
    full = single or double  # numbers of float32 are the same in float64
    if full and all(_of_numbers(one) for one in cause.explained):
        return ROUNDED if all(_rounded(one, target) for one in _smallest(full)) else None
    return None


def in_float32(cause: Cause, target: Target) -> bool:
    """Return whether calls fail in float64 alone, and by no more than float32 explains."""
    if any(one.row.dtype != "fp64" for one in cause.explained):
        return False
    operation = cause.condition.operation
    known = target.domain(operation)
    coarser = replace(known, precision={**known.precision, "fp64": "fp32"})
    judged_so = replace(target, domains={**target.domains, operation: coarser})
    found = [again(one, judged_so) for one in _smallest(cause.explained)]
    return all(one is not None and not one.failed for one in found)


def lost_in_halves(cause: Cause, target: Target) -> bool:
    """Return whether a cause, known by name, shows in half precision alone: its calls are right in float32."""
    told = [one for one in cause.explained if judged(one) is not None]
    halves = all(one.row.dtype in dtypes.HALVES for one in cause.explained)
    return bool(halves and told) and all(_right_in_float32(one, target) for one in _smallest(told))


def _smallest(examples: Sequence[Example]) -> list[Example]:
    return sorted(examples, key=lambda one: one.size)[:_CALLS]


def _of_numbers(example: Example) -> bool:
    """Return whether numbers are wrong that the formula judges, or a law every call of which the formula judges."""
    known = example.signature
    return known is not None and known.kind in (Failing.VALUE, Failing.GRADIENT) and bool(_calls(example))


def _calls(example: Example) -> list[Recorded]:
    """Return the example's calls that the formula judges: the judged one, or all calls of a law if it judges each."""
    call = judged(example)
    if call is not None:
        return [call]
    every = list(example.recorded)
    return every if all(has_formula(one) for one in every) else []


def _right_in_float32(example: Example, target: Target) -> bool:
    call = judged(example)
    return call is not None and _error(call, example.row, "fp32", target, in_bounds=True) <= 1.0


def _rounded(example: Example, target: Target) -> bool:
    """Return whether the error of each call in float64 is at most √(u/v) of that in float32, u and v their eps, and
    one of the calls, made again, is outside its bound: the example is wrong by a rounding error."""
    u, v = (torch.finfo(dtypes.TORCH[dtype]).eps for dtype in _FULL)
    calls = _calls(example)
    for call in calls:
        double, single = (_error(call, example.row, dtype, target) for dtype in _FULL)
        if not (math.isfinite(double) and double <= math.sqrt(u / v) * single):
            return False
    own = example.row.dtype
    return any(_error(call, example.row, own, target, in_bounds=True) > 1.0 for call in calls)


def _error(call: Recorded, row: CheckRun, dtype: str, target: Target, *, in_bounds: bool = False) -> float:
    """Return the largest error of a call in a dtype, or in units of its bound; infinity where the call has no value."""
    row = replace(row, dtype=dtype)
    call = _in(dtypes.TORCH[dtype], call)
    given = outcome(row, target.implementation, target, call)
    exact = None if given is None else references(row, target, call)
    if given is None or not exact:
        return math.inf
    if in_bounds or any(given[key].shape != x.exact.shape for key, x in exact.items()):
        return furthest(given, exact)
    error = max(float(_off(given[key], x.exact).max(initial=0.0)) for key, x in exact.items())
    return error if math.isfinite(error) else math.inf


def _off(given: Floats, exact: Floats) -> Floats:
    """Return |given − exact|, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(given == exact, 0.0, np.abs(given - exact))


def _in(dtype: torch.dtype, call: Recorded) -> Recorded:
    """Convert a call's floating-point tensors, in lists and mappings as well, to a format."""
    arguments: Mapping[str, Any] = {name: _as(dtype, value) for name, value in call.arguments.items()}
    return replace(call, arguments=arguments, cotangent=_as(dtype, call.cotangent))


def _as(dtype: torch.dtype, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, list | tuple):
        return type(value)(_as(dtype, item) for item in value)
    return {key: _as(dtype, item) for key, item in value.items()} if isinstance(value, dict) else value
