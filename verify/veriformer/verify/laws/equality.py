"""Equality of results: quantities computed from them, and comparison within the sum of their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veriformer.verify.judging.judge import NO_NUMBER, Floats, Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.scripts.script import literal

_SUBTRACTION = 1.0 + 2.0**-50  # two results are subtracted in float64, which rounds once


def difference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a − b in float64, 0 where they are equal, also at infinity."""
    return torch.where(a == b, 0.0, a.double() - b.double())


def exactly(values: NDArray[Any]) -> Reference:
    """Return the reference of exactly these values: of quantities without rounding, such as which keys are seen."""
    return Reference(values.astype(np.float64), np.zeros(values.shape))


def equal(trial: Trial, a: Observation, b: Observation, of_a: Reference, of_b: Reference, what: str) -> None:
    """Raise Violation unless two results that are equal over the reals differ by at most both their bounds.

    Such a law is also kept by a result that is the same everywhere; where the exact values are not, that is refused.
    """
    assert_not_constant(trial, a, of_a, what)
    size = float(np.abs(of_a.exact[np.isfinite(of_a.exact)]).max(initial=0.0))
    narrow = (of_a.narrow + of_b.narrow) * _SUBTRACTION
    whole = None
    if of_a.widen or of_b.widen:
        whole = lambda: (of_a.bound + of_b.bound) * _SUBTRACTION  # noqa: E731
    reference = Reference(np.zeros_like(narrow), narrow, scale=size, constant=True, widen=whole)
    trial.assert_within_bound(trial.observe(difference, a, b), reference, what)


def inner(x: torch.Tensor, dx: torch.Tensor, y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """Return ⟨x, dx⟩ − ⟨y, dy⟩ in float64."""
    return (x.double() * dx.double()).sum() - (y.double() * dy.double()).sum()


def outside(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Return max(low − x, x − high, 0), the distance of x from [low, high], in float64."""
    return torch.maximum(low - x.double(), x.double() - high).clamp(min=0)


def between(trial: Trial, x: Observation, low: Floats, high: Floats, bound: Floats, what: str) -> None:
    """Raise Violation unless a result lies between two numbers, give or take its bound."""
    edges = [constant(torch.as_tensor(np.asarray(edge))) for edge in (low, high)]
    slack = bound * _SUBTRACTION + 2.0**-50 * (np.abs(low) + np.abs(high))
    law = Reference(np.zeros(np.shape(slack)), slack, scale=np.inf, constant=True)
    trial.assert_within_bound(trial.observe(outside, x, *edges), law, what)


def assert_not_constant(trial: Trial, observed: Observation, reference: Reference, what: str) -> None:
    """Raise Violation if two entries are equal whose exact values lie further apart than their bounds."""
    x = observed.value.detach()
    if tuple(x.shape) != reference.exact.shape:
        return
    low, high = _apart(reference.exact, reference.narrow)
    if low is not None and reference.widen is not None and bool(x[low] == x[high]):
        low, high = _apart(reference.exact, reference.bound)
    if low is None:
        return
    if bool(x[low].isinf()):
        return  # both may have overflowed, which the rows of values judge, and says nothing of what they depend on
    trial.assert_true(
        bool(x[low] != x[high]),
        f"{what}: entries {list(low)} and {list(high)} are equal and may not be",
        f"bool({observed.expression}[{low!r}] != {observed.expression}[{high!r}])",
    )


def _apart(exact: Floats, bound: Floats) -> tuple[Any, Any]:
    """Return the indices of two entries that lie further apart than their bounds, or (None, None)."""
    with np.errstate(invalid="ignore"):
        upper, lower = exact + bound, exact - bound
    if not np.isfinite(upper).any():
        return None, None
    low = np.unravel_index(int(np.where(np.isfinite(upper), upper, np.inf).argmin()), upper.shape)
    high = np.unravel_index(int(np.where(np.isfinite(lower), lower, -np.inf).argmax()), lower.shape)
    if not upper[low] < lower[high]:
        return None, None
    return tuple(int(i) for i in low), tuple(int(i) for i in high)


def slice_result(observed: Observation, index: tuple[slice, ...]) -> Observation:
    """Return a slice of a result."""
    return Observation(observed.value[index], f"{observed.expression}[{index!r}]", observed.sources)


def slice_reference(reference: Reference, index: tuple[slice, ...]) -> Reference:
    """Return a slice of a reference."""
    part = None if reference.widen is None else lambda: reference.bound[index]
    return Reference(reference.exact[index], reference.narrow[index], widen=part)


def constant(value: torch.Tensor) -> Observation:
    """Return a tensor of the check's own as an observation."""
    return Observation(value, literal(value))


def scale_bound(bound: Floats, size: Floats) -> Floats:
    """Return bound · size, with 0 · ∞ = 0."""
    return np.asarray(np.where(size == 0, 0.0, np.where(size == 0, 0.0, bound) * size))


def total(exact: float | Floats, bound: Floats, axis: int | tuple[int, ...] | None = None) -> Reference:
    """Return the reference of a sum of judged entries: their bounds add up."""
    summed = np.asarray(bound.sum(axis=axis)) * _SUBTRACTION
    return Reference(
        np.broadcast_to(np.asarray(exact, dtype=np.float64), summed.shape), summed, scale=1.0, constant=True
    )


def finite(trial: Trial, observed: Observation, what: str) -> None:
    """Raise Violation if an entry is infinite or NaN."""
    every = bool(observed.value.isfinite().all())
    trial.assert_true(every, f"{what} {NO_NUMBER}", f"bool({observed.expression}.isfinite().all())")


def stays_finite(trial: Trial, observed: Observation, reference: Reference, what: str) -> None:
    """Raise Violation if an entry overflows whose exact value is well within the dtype, however wide its bound."""
    within = torch.as_tensor(np.abs(reference.exact) < trial.format.max / 8)
    finite(trial, Observation(observed.value[within], f"{observed.expression}[{literal(within)}]"), what)


def multiply(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Return x times a factor, in float64."""
    return x.double() * factor.double()


def sums(a: torch.Tensor, b: torch.Tensor, both: torch.Tensor) -> torch.Tensor:
    """Return a + b − both in float64."""
    return a.double() + b.double() - both.double()
