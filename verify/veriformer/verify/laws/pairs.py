"""Pairs of calls of one operation that must agree, and calls with values that must not be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veriformer.verify.judging.judge import Bools, Reference
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import constant, difference, equal
from veriformer.verify.laws.gradients import draw_cotangent


def exact(trial: Trial, operation: OpInfo, arguments: Arguments) -> Reference:
    """Return the reference value and bound of a single-tensor result."""
    return operation.exact(trial, arguments, use_exact_oracle=False)[0]


def same(
    trial: Trial, operation: OpInfo, one: Arguments, two: Arguments, what: str, gradients: Sequence[str] = ()
) -> None:
    """Raise Violation unless two calls that are equal over the reals agree, and so do the gradients named."""
    of_one, of_two = exact(trial, operation, one), exact(trial, operation, two)
    cotangent = draw_cotangent(trial, of_one.exact.shape)
    a, b = (trial.call(x, wrt=gradients, cotangent=cotangent if gradients else None) for x in (one, two))
    equal(trial, a.result, b.result, of_one, of_two, what)
    if gradients:
        grads = [operation.exact_gradients(trial, x, cotangent, use_exact_oracle=False) for x in (one, two)]
        for name in gradients:
            pair = grads[0][name], grads[1][name]
            equal(trial, a.gradient(name), b.gradient(name), *pair, f"{what}: gradient of {name}")


def reorder_rows(x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Reorder the rows of the last but one axis."""
    return x[..., order, :]


def moves_along(
    trial: Trial, operation: OpInfo, one: Arguments, two: Arguments, order: NDArray[np.int64], what: str
) -> None:
    """Raise Violation unless the second call gives the first one's rows in this order."""
    reference = exact(trial, operation, one)
    a, b = trial.call(one).result, trial.call(two).result
    trial.assert_within_bound(a, reference, "result")
    moved = Reference(reference.exact[..., order, :], reference.bound[..., order, :])
    equal(trial, trial.observe(reorder_rows, a, constant(torch.as_tensor(order))), b, moved, moved, what)


def differ_only_where(
    trial: Trial,
    operation: OpInfo,
    one: Arguments,
    two: Arguments,
    blind: Bools,
    what: str,
    *,
    settled: Bools | None = None,
) -> None:
    """Raise Violation where a result changes that cannot see the change, or none changes that must.

    settled: where the contract says what the results are, if not everywhere.
    """
    of_one, of_two = exact(trial, operation, one), exact(trial, operation, two)
    a, b = trial.call(one).result, trial.call(two).result
    trial.assert_within_bound(a, of_one if settled is None else only(of_one, settled), "result")
    bound = np.where(blind, (of_one.bound + of_two.bound) * (1 + 2.0**-40), np.inf)
    law = Reference(np.zeros_like(bound), bound, scale=float(np.abs(of_one.exact).max(initial=0.0)), constant=True)
    trial.assert_within_bound(trial.observe(difference, a, b), law, what)
    if (np.abs(of_one.exact - of_two.exact) > of_one.bound + of_two.bound).any():
        expression = f"not torch.equal({a.expression}, {b.expression})"
        trial.assert_true(not torch.equal(a.value, b.value), f"{what}: what must change does not", expression)


def only(reference: Reference, judged: Bools) -> Reference:
    """Return the reference with an infinite bound outside the judged entries."""
    return Reference(reference.exact, np.where(judged, reference.bound, np.inf), constant=True)


def sum_float64(*parts: torch.Tensor) -> torch.Tensor:
    """Return the sum in float64."""
    return sum(part.double() for part in parts)  # type: ignore[return-value]


def adds_up(
    trial: Trial, whole: Observation, parts: Sequence[Observation], of_whole: Reference, of_parts: Any, what: str
) -> None:
    """Raise Violation unless the whole is the sum of its parts."""
    size = sum(np.abs(reference.exact) for reference in of_parts)
    bound = sum(reference.bound for reference in of_parts) * (1 + 2.0**-40) + 2.0**-46 * size
    equal(trial, whole, trial.observe(sum_float64, *parts), of_whole, Reference(of_whole.exact, bound), what)
