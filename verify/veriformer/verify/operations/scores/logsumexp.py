"""Log-sum-exp: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.equality import assert_not_constant, between
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores.along_axis import (
    axis_in,
    bulk_scores,
    changed_scores,
    draw_huge,
    draw_scores,
    draw_shifted,
    grant_one_bit,
    long_scores,
    one_slice,
    ordinary_scores,
    softmax_by_log,
    through_maximum,
)


def _logsumexp_vjp_by_log(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    axis = axis_in(a) % a["z"].ndim
    shape = a["z"].shape
    return {"z": softmax_by_log(xp, a)[0] * xp.reshape(g, (*shape[:axis], 1, *shape[axis + 1 :]))}


def _logsumexp_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return (g / s) e with s = Σ e, as the chain rule gives it for max + log s."""
    z, axis = a["z"], axis_in(a) % a["z"].ndim
    g = xp.reshape(g, (*z.shape[:axis], 1, *z.shape[axis + 1 :]))
    e = xp.exp(z - xp.max(z, axis=axis, keepdims=True))
    dz = e * (g / xp.sum(e, axis=axis, keepdims=True))
    return {"z": through_maximum(xp, z, dz, g, axis)}


LOGSUMEXP = operation(
    "logsumexp",
    sample=draw_scores,
    sample_basic=ordinary_scores,
    sample_large=long_scores,
    also_gradients=(_logsumexp_vjp_by_log, _logsumexp_vjp_by_chain),
    batch_slice=lambda trial: one_slice(trial, reduced=True),
    argument_perturbations=changed_scores,
    sample_accuracy=bulk_scores,
    separate=("result",),
)


def less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a − b in float64."""
    return a.double() - b.double()


def _logsumexp_shift(trial: Trial) -> None:
    z, shifted, c = draw_shifted(trial)
    a, b = trial.call({"z": z}).result, trial.call({"z": shifted}).result
    of_a, of_b = (LOGSUMEXP.exact(trial, {"z": x}, use_exact_oracle=False)[0] for x in (z, shifted))
    assert_not_constant(trial, a, of_a, "log-sum-exp")
    bound = (of_a.bound + of_b.bound) * (1 + 2.0**-50) + 2.0**-50 * abs(c)
    law = Reference(np.full(bound.shape, c), bound, scale=float(np.abs(of_a.exact).max()) + 1.0, constant=True)
    trial.assert_within_bound(trial.observe(less, b, a), law, "log-sum-exp of shifted scores less that of the scores")


def _logsumexp_range(trial: Trial) -> None:
    z, plain, highest = draw_huge(trial)
    xp = over_float64(trial.dtype_name)
    exact = xp.asarray(highest) + LOGSUMEXP.formulas[0](xp, {"z": xp.asarray(plain.numpy())})[0]
    cotangent = draw_cotangent(trial, tuple(z.shape[:1]))
    outcome = trial.call({"z": z}, wrt=("z",), cotangent=cotangent)
    trial.assert_within_bound(
        outcome.result, Reference(*xp.judgeable(exact), constant=True), "log-sum-exp of huge scores"
    )
    gradient = LOGSUMEXP.exact_gradients(trial, {"z": plain}, cotangent, use_exact_oracle=False)["z"]
    trial.assert_within_bound(outcome.gradient("z"), grant_one_bit(trial, gradient), "gradient at huge scores")


def _between(trial: Trial) -> None:
    arguments = draw_scores(trial)
    reference = LOGSUMEXP.exact(trial, arguments, use_exact_oracle=False)[0]
    result = trial.call(arguments).result
    assert_not_constant(trial, result, reference, "log-sum-exp")
    z, axis = arguments["z"], axis_in(arguments)
    low = z.double().amax(axis).numpy()
    high = low + np.log(z.shape[axis])
    between(trial, result, low, high, reference.bound, "how far it is outside max and max + log n")


CHECKS = (
    check("logsumexp.shift", _logsumexp_shift),
    check("logsumexp.between", _between),
    check("logsumexp.range", _logsumexp_range),
)
