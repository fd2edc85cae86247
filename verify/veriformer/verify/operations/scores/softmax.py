"""Softmax: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import assert_not_constant, constant, equal, total
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.laws.pairs import same
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores.along_axis import (
    axis_in,
    bulk_scores,
    changed_scores,
    draw_huge,
    draw_scores,
    draw_shifted,
    few_rows,
    grant_one_bit,
    long_scores,
    one_slice,
    ordinary_scores,
    softmax_by_log,
    softmax_scaled,
    through_maximum,
)
from veriformer.verify.strategies import values


def _softmax_vjp_by_log(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    p = softmax_by_log(xp, a)[0]
    return {"z": p * (g - xp.sum(p * g, axis=axis_in(a), keepdims=True))}


def _softmax_vjp_scaled(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    found = softmax_scaled(xp, a)
    return {"z": found[0] * (g - xp.sum(found[0] * g, axis=axis_in(a), keepdims=True))} if found else {}


def _softmax_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return e (g / s − Σ g e / s²) with s = Σ e, as the chain rule gives it for e / s."""
    z, axis = a["z"], axis_in(a)
    e = xp.exp(z - xp.max(z, axis=axis, keepdims=True))
    s = xp.sum(e, axis=axis, keepdims=True)
    dz = e * (g / s - xp.sum(g * e, axis=axis, keepdims=True) / s / s)
    return {"z": through_maximum(xp, z, dz, 0, axis)}


SOFTMAX = operation(
    "softmax",
    sample=draw_scores,
    sample_basic=ordinary_scores,
    sample_large=long_scores,
    also=(softmax_by_log, softmax_scaled),
    also_gradients=(_softmax_vjp_by_log, _softmax_vjp_by_chain, _softmax_vjp_scaled),
    refuses=lambda trial, good: [InvalidCall("an empty axis", {"z": good["z"][..., :0]}, ("z", "dim"))],
    batch_slice=lambda trial: one_slice(trial, reduced=False),
    argument_perturbations=changed_scores,
    sample_accuracy=bulk_scores,
)


def _summed(x: Observation, axis: int) -> Observation:
    return Observation(x.value.double().sum(axis), f"{x.expression}.double().sum({axis})")


def _simplex(trial: Trial) -> None:
    arguments = draw_scores(trial)
    reference = SOFTMAX.exact(trial, arguments, use_exact_oracle=False)[0]
    p = trial.call(arguments).result
    assert_not_constant(trial, p, reference, "probabilities")
    e = p.expression
    trial.assert_true(bool((p.value >= 0).all()), "a probability is negative or NaN", f"bool(({e} >= 0).all())")
    axis = axis_in(arguments)
    trial.assert_within_bound(_summed(p, axis), total(1.0, reference.bound, axis), "the sum of probabilities")


def _softmax_shift(trial: Trial) -> None:
    z, shifted, _ = draw_shifted(trial)
    same(trial, SOFTMAX, {"z": z}, {"z": shifted}, "softmax of shifted scores")


def _jacobian(trial: Trial) -> None:
    arguments = draw_scores(trial)
    cotangent = draw_cotangent(trial, tuple(arguments["z"].shape), expanded=False)
    gradient = trial.call(arguments, wrt=("z",), cotangent=cotangent).gradient("z")
    reference = SOFTMAX.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)["z"]
    assert_not_constant(trial, gradient, reference, "gradient")
    axis = axis_in(arguments)
    law = total(0.0, reference.bound, axis)
    size = float(np.abs(reference.exact).sum(axis).max(initial=0.0))
    trial.assert_within_bound(
        _summed(gradient, axis), Reference(law.exact, law.bound, scale=size, constant=True), "sum of the gradient"
    )


def gathered(x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Return the entries of the last axis in another order."""
    return x[..., order]


def _permutation(trial: Trial) -> None:
    n, m = few_rows(trial)
    kind = trial.draw(values())
    z = trial.tensor(kind.array(n, m))
    order = kind.rng.permutation(m)
    reference = SOFTMAX.exact(trial, {"z": z}, use_exact_oracle=False)[0]
    a, b = trial.call({"z": z}), trial.call({"z": z[:, order]})
    agrees(trial, SOFTMAX, {"z": z}, a, [reference])
    moved = Reference(reference.exact[:, order], reference.bound[:, order])
    equal(
        trial,
        trial.observe(gathered, a.result, constant(torch.as_tensor(order))),
        b.result,
        moved,
        moved,
        "softmax in another order",
    )


def _softmax_range(trial: Trial) -> None:
    z, plain, _ = draw_huge(trial)
    cotangent = draw_cotangent(trial, tuple(z.shape))
    outcome = trial.call({"z": z}, wrt=("z",), cotangent=cotangent)
    reference = SOFTMAX.exact(trial, {"z": plain}, use_exact_oracle=False)[0]
    trial.assert_within_bound(outcome.result, grant_one_bit(trial, reference), "softmax of huge scores")
    gradient = SOFTMAX.exact_gradients(trial, {"z": plain}, cotangent, use_exact_oracle=False)["z"]
    trial.assert_within_bound(outcome.gradient("z"), grant_one_bit(trial, gradient), "gradient at huge scores")


CHECKS = (
    check("softmax.simplex", _simplex),
    check("softmax.shift", _softmax_shift),
    check("softmax.permutation", _permutation),
    check("softmax.range", _softmax_range),
    check("softmax.jacobian", _jacobian, dtypes=("fp64", "fp32", "fp16")),  # bf16 leaves it little to say
)
