"""The mean squared error as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.layers.mse_loss import mse_loss, mse_loss_vjp
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.strategies import choice, leading_shapes, long_shapes, sizes, values, widths
from veriformer.verify.trial import Arguments, Trial


def _mse_loss(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [mse_loss(xp, a["prediction"], a["target"])]


def _mean_of_samples(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Divided before it is summed, so that the sum overflows no earlier than the mean."""
    error = a["prediction"] - a["target"]
    return [xp.sum(xp.sum(error * error, axis=-1) / int(np.prod(error.shape[:-1], dtype=int)))]


def _mse_loss_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"prediction": mse_loss_vjp(xp, a["prediction"], a["target"], g)[0]}


def _factor_first_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """With the factor of all errors rounded by itself: whatever it is off by, every entry is."""
    error = a["prediction"] - a["target"]
    return {"prediction": error * (g * 2 / int(np.prod(error.shape[:-1], dtype=int)))}


def draw_mse_loss(trial: Trial) -> Arguments:
    """Vectors, one alone or many; some targets are met exactly."""
    shape = (*trial.draw(leading_shapes()), trial.draw(widths(5)))
    kind, other = trial.draw(values()), trial.draw(values())
    prediction, target = kind.array(*shape), other.array(*shape)
    met = kind.rng.random(shape) < trial.draw(choice(0.0, 0.3))
    return {"prediction": trial.tensor(prediction), "target": trial.tensor(np.where(met, prediction, target))}


def _ordinary(trial: Trial) -> Arguments:
    shape = (trial.draw(sizes(2)), trial.draw(sizes(2)))
    kind = trial.draw(values(("gaussian",)))
    return {"prediction": trial.tensor(kind.array(*shape)), "target": trial.tensor(kind.rng.standard_normal(shape))}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    """One error grows, whichever of the two numbers moves."""
    a = dict(_ordinary(trial))
    first = torch.zeros_like(a["target"])
    first[0, 0] = 4.0 if a["prediction"][0, 0] >= a["target"][0, 0] else -4.0
    return a, {
        "prediction": {**a, "prediction": a["prediction"] + first},
        "target": {**a, "target": a["target"] - first},
    }


def _bulk(trial: Trial) -> Arguments:
    kind, other = (trial.draw(values(("gaussian", "one-signed", "spread"))) for _ in range(2))
    return {"prediction": trial.tensor(kind.array(60, 20)), "target": trial.tensor(other.array(60, 20))}


def _long(trial: Trial) -> Arguments:
    shape = trial.draw(long_shapes())
    kind, other = (trial.draw(values(("gaussian", "one-signed", "offset"))) for _ in range(2))
    return {"prediction": trial.tensor(kind.array(*shape)), "target": trial.tensor(other.array(*shape))}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    a = _ordinary(trial)
    y, t = a["prediction"], a["target"]
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    both = ("prediction", "target")
    yield Refusal("no prediction", {**a, "prediction": None}, both[:1])
    yield Refusal("no target", {**a, "target": None}, both[1:])
    yield Refusal("one target for all samples", {**a, "target": t[:1]}, both)
    yield Refusal("a target without the axis of samples", {**a, "target": t[0]}, both)
    yield Refusal("one number for each vector", {**a, "target": t[:, :1]}, both)
    yield Refusal("vectors of one number against numbers", {"prediction": y[:, :1], "target": t[:, 0]}, both)
    yield Refusal("a target of another dtype", {**a, "target": t.to(other)}, both)
    yield Refusal("no samples", {"prediction": y[:0], "target": t[:0]}, both)
    yield Refusal("empty vectors", {"prediction": y[:, :0], "target": t[:, :0]}, both)


MSE_LOSS = Operation(
    name="mse_loss",
    draw=draw_mse_loss,
    ordinary=_ordinary,
    formulas=(_mse_loss, _mean_of_samples),
    vjps=(_mse_loss_vjp, _factor_first_vjp),
    inputs=("prediction",),
    refusals=_refusals,
    changes=_changes,
    bulk=_bulk,
    long=_long,
    forms=("fp32", "bf16"),
)
