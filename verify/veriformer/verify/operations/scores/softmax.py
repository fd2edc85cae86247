"""Softmax: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.scores.softmax import softmax, softmax_vjp
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.operation import Operation, Refusal
from veriformer.verify.judging.trial import Observation, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import alive, constant, equal, total
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.scores.along_axis import (
    axis_in,
    bad_axis,
    bulk_scores,
    changed_scores,
    draw_huge,
    draw_scores,
    draw_shifted,
    granting_one_bit,
    long_rows_of_scores,
    one_slice,
    ordinary_scores,
    softmax_by_log,
    through_maximum,
)
from veriformer.verify.strategies import sizes, values, widths


def _softmax(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [softmax(xp, a["z"], axis_in(a))]


def _softmax_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"z": softmax_vjp(xp, a["z"], g, axis_in(a))}


def _softmax_vjp_by_log(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    p = softmax_by_log(xp, a)[0]
    return {"z": p * (g - xp.sum(p * g, axis=axis_in(a), keepdims=True))}


def _softmax_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """e (g / s − Σ g e / s²) with s = Σ e, as the chain rule gives it for e / s."""
    z, axis = a["z"], axis_in(a)
    e = xp.exp(z - xp.max(z, axis=axis, keepdims=True))
    s = xp.sum(e, axis=axis, keepdims=True)
    dz = e * (g / s - xp.sum(g * e, axis=axis, keepdims=True) / s / s)
    return {"z": through_maximum(xp, z, dz, 0, axis)}


def _bad_softmax(trial: Trial) -> Iterator[Refusal]:
    yield from bad_axis(trial)
    yield Refusal("an empty axis", {"z": trial.tensor(np.zeros((trial.draw(sizes()), 0)))}, ("z", "dim"))


SOFTMAX = Operation(
    name="softmax",
    draw=draw_scores,
    ordinary=ordinary_scores,
    long=long_rows_of_scores,
    formulas=(_softmax, softmax_by_log),
    vjps=(_softmax_vjp, _softmax_vjp_by_log, _softmax_vjp_by_chain),
    inputs=("z",),
    refusals=_bad_softmax,
    part=lambda trial: one_slice(trial, reduced=False),
    changes=changed_scores,
    bulk=bulk_scores,
)


def _summed(x: Observation, axis: int) -> Observation:
    return Observation(x.value.double().sum(axis), f"{x.expression}.double().sum({axis})")


def _simplex(trial: Trial) -> None:
    arguments = draw_scores(trial)
    reference = SOFTMAX.exact(trial, arguments, sharp=False)[0]
    p = trial.call(arguments).result
    alive(trial, p, reference, "probabilities")
    e = p.expression
    trial.require(bool((p.value >= 0).all()), "a probability is negative or NaN", f"bool(({e} >= 0).all())")
    axis = axis_in(arguments)
    trial.judge(_summed(p, axis), total(1.0, reference.bound, axis), "the sum of probabilities")


def _softmax_shift(trial: Trial) -> None:
    z, shifted, _ = draw_shifted(trial)
    a, b = trial.call({"z": z}).result, trial.call({"z": shifted}).result
    of_a, of_b = (SOFTMAX.exact(trial, {"z": x}, sharp=False)[0] for x in (z, shifted))
    equal(trial, a, b, of_a, of_b, "softmax of shifted scores")


def _jacobian(trial: Trial) -> None:
    arguments = draw_scores(trial)
    cotangent = draw_cotangent(trial, tuple(arguments["z"].shape), expanded=False)
    gradient = trial.call(arguments, wrt=("z",), cotangent=cotangent).gradient("z")
    reference = SOFTMAX.exact_gradients(trial, arguments, cotangent, sharp=False)["z"]
    alive(trial, gradient, reference, "gradient")
    axis = axis_in(arguments)
    law = total(0.0, reference.bound, axis)
    size = float(np.abs(reference.exact).sum(axis).max(initial=0.0))
    trial.judge(
        _summed(gradient, axis), Reference(law.exact, law.bound, scale=size, constant=True), "sum of the gradient"
    )


def gathered(x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """The entries of the last axis in another order."""
    return x[..., order]


def _permutation(trial: Trial) -> None:
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    kind = trial.draw(values())
    z = trial.tensor(kind.array(n, m))
    order = kind.rng.permutation(m)
    reference = SOFTMAX.exact(trial, {"z": z}, sharp=False)[0]
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
    reference = SOFTMAX.exact(trial, {"z": plain}, sharp=False)[0]
    trial.judge(outcome.result, granting_one_bit(trial, reference), "softmax of huge scores")
    gradient = SOFTMAX.exact_gradients(trial, {"z": plain}, cotangent, sharp=False)["z"]
    trial.judge(outcome.gradient("z"), granting_one_bit(trial, gradient), "gradient at huge scores")


CHECKS = (
    check("softmax.simplex", _simplex),
    check("softmax.shift", _softmax_shift),
    check("softmax.permutation", _permutation),
    check("softmax.range", _softmax_range),
    check("softmax.jacobian", _jacobian, dtypes=("fp64", "fp32", "fp16")),  # bf16 leaves it little to say
)
