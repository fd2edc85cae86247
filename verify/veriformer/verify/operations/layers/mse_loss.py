"""The mean squared error: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.equality import constant, equal, multiply
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.derived import operation
from veriformer.verify.strategies import choice, leading_shapes, shapes, sizes, values, widths


def _mean_of_samples(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Compute Σ (‖e‖² / n): divided before the sum, which overflows no earlier than the mean."""
    error = a["prediction"] - a["target"]
    return [xp.sum(xp.sum(error * error, axis=-1) / int(np.prod(error.shape[:-1], dtype=int)))]


def _factor_first_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Compute e · (2 g / n) with the factor rounded first: its error scales every entry."""
    error = a["prediction"] - a["target"]
    return {"prediction": error * (g * 2 / int(np.prod(error.shape[:-1], dtype=int)))}


def draw_mse_loss(trial: Trial) -> Arguments:
    """Draw vectors, one alone or many; some targets are met exactly."""
    large = trial.rows()
    shape = (*trial.draw(leading_shapes()), trial.draw(widths(5))) if large is None else large
    kind, other = trial.draw(values()), trial.draw(values())
    prediction, target = kind.array(*shape), other.array(*shape)
    met = kind.rng.random(shape) < trial.draw(choice(0.0, 0.3))
    return {"prediction": trial.tensor(prediction), "target": trial.tensor(np.where(met, prediction, target))}


def _ordinary(trial: Trial) -> Arguments:
    shape = (trial.draw(sizes(2)), trial.draw(sizes(2)))
    kind = trial.draw(values(("gaussian",)))
    return {"prediction": trial.tensor(kind.array(*shape)), "target": trial.tensor(kind.rng.standard_normal(shape))}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    """Draw a call, and changes of the prediction and of the target that enlarge one error."""
    a = dict(_ordinary(trial))
    first = torch.zeros_like(a["target"])
    first[0, 0] = 4.0 if a["prediction"][0, 0] >= a["target"][0, 0] else -4.0
    return a, {
        "prediction": {**a, "prediction": a["prediction"] + first},
        "target": {**a, "target": a["target"] - first},
    }


def _bulk(trial: Trial) -> Arguments:
    kind, other = (trial.draw(values(("gaussian", "one-signed", "spread"))) for _ in range(2))
    trial.only_large()
    shape = trial.rows((8, 2000), (16, 1000))
    assert shape is not None
    return {"prediction": trial.tensor(kind.array(*shape)), "target": trial.tensor(other.array(*shape))}


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    y, t = good["prediction"], good["target"]
    both = ("prediction", "target")
    yield InvalidCall("one target for all samples", {**good, "target": t[:1]}, both)
    yield InvalidCall("a target without the axis of samples", {**good, "target": t[0]}, both)
    yield InvalidCall("vectors of one number against numbers", {"prediction": y[:, :1], "target": t[:, 0]}, both)
    yield InvalidCall("no samples", {"prediction": y[:0], "target": t[:0]}, both)
    yield InvalidCall("empty vectors", {"prediction": y[:, :0], "target": t[:, :0]}, both)


MSE_LOSS = operation(
    "mse_loss",
    sample=draw_mse_loss,
    sample_basic=_ordinary,
    also=(_mean_of_samples,),
    also_gradients=(_factor_first_vjp,),
    refuses=_refusals,
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
    sample_large=draw_mse_loss,
    structural_dtypes=("fp32", "bf16"),
)


def weighted_sum(weights: torch.Tensor, *losses: torch.Tensor) -> torch.Tensor:
    """Return the sum of losses times their weights, in float64."""
    return (weights.double() * torch.stack([loss.double() for loss in losses])).sum()


def _partition(trial: Trial) -> None:
    n, d = trial.draw(sizes(2, 7)), trial.draw(sizes(1, 4))
    kind = trial.draw(values())
    prediction, target = trial.tensor(kind.array(n, d)), trial.tensor(kind.rng.standard_normal((n, d)))
    cut = 1 + trial.draw(sizes(0, 100)) % (n - 1)
    parts = [(slice(None), n), (slice(0, cut), cut), (slice(cut, None), n - cut)]
    found = [call_within_bound(trial, MSE_LOSS, {"prediction": prediction[p], "target": target[p]}) for p, _ in parts]
    weights = np.array([-1.0, cut / n, (n - cut) / n])
    size = sum(abs(w) * (abs(r.exact) + r.bound) for w, (_, r) in zip(weights, found, strict=True))
    bound = sum(abs(w) * r.bound for w, (_, r) in zip(weights, found, strict=True)) + 2.0**-50 * size
    law = Reference(np.zeros(()), np.asarray(bound), scale=float(size), constant=True)
    observed = trial.observe(weighted_sum, constant(torch.as_tensor(weights)), *(y for y, _ in found))
    trial.assert_within_bound(observed, law, "the loss of all samples less the mean of its parts")


def _distance(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 3, 4))
    rng = trial.draw(values()).rng
    a, b = (trial.tensor(rng.integers(-8, 9, shape) / 4) for _ in range(2))
    shift, factor = trial.draw(choice(2.0, -4.0)), trial.draw(choice(2.0, 0.5, -4.0))
    plain, of_plain = call_within_bound(trial, MSE_LOSS, {"prediction": a, "target": b})
    for what, y, t in (("exchanged", b, a), ("shifted", a + shift, b + shift)):
        other, of_other = call_within_bound(trial, MSE_LOSS, {"prediction": y, "target": t})
        equal(trial, plain, other, of_plain, of_other, f"the loss of arguments {what}")
    scaled, of_scaled = call_within_bound(trial, MSE_LOSS, {"prediction": factor * a, "target": factor * b})
    there = Reference(of_plain.exact * factor**2, of_plain.bound * factor**2)
    moved = trial.observe(multiply, plain, constant(torch.tensor(factor**2, dtype=torch.float64)))
    equal(trial, moved, scaled, there, of_scaled, "the loss of arguments scaled")


def _long_sums(trial: Trial) -> None:
    """Check squares within the range of fp16, all or all but one, whose sum is not while their mean is."""
    n, rng = trial.draw(sizes(4, 40)), trial.draw(values()).rng
    size = rng.integers(150, 250, (n, 1))
    if trial.draw(st.booleans()):
        size = np.where(np.arange(n)[:, None] == rng.integers(0, n), 300, size // 5)
    error = rng.choice([-1.0, 1.0], (n, 1)) * size
    target = rng.integers(-100, 100, (n, 1))
    judge_with_gradients(trial, MSE_LOSS, {"prediction": trial.tensor(target + error), "target": trial.tensor(target)})


CHECKS = (
    check("mse_loss.partition", _partition, dtypes=("fp64", "fp32", "bf16")),
    check("mse_loss.distance", _distance, dtypes=("fp64", "fp32")),
    check("mse_loss.range", _long_sums, dtypes=("fp16",)),
)
