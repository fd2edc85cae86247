"""Laws of the mean squared error and of the residual connection."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees
from veriformer.verify.checks.equation import judge_with_gradients
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import constant, equal
from veriformer.verify.judge import Reference
from veriformer.verify.operation import Operation
from veriformer.verify.operations import MSE_LOSS, RESIDUAL
from veriformer.verify.script import literal
from veriformer.verify.strategies import choice, shapes, sizes, values
from veriformer.verify.trial import Arguments, Observation, Trial


def _judged(trial: Trial, operation: Operation, arguments: Arguments) -> tuple[Observation, Reference]:
    """The result of a call that lies within its bound, and what it must be."""
    reference = operation.exact(trial, arguments, sharp=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, operation, arguments, outcome, [reference])
    return outcome.result, reference


def weighted_sum(weights: torch.Tensor, *losses: torch.Tensor) -> torch.Tensor:
    """The sum of losses times their weights, in float64."""
    return (weights.double() * torch.stack([loss.double() for loss in losses])).sum()


def _partition(trial: Trial) -> None:
    n, d = trial.draw(sizes(2, 7)), trial.draw(sizes(1, 4))
    kind = trial.draw(values())
    prediction, target = trial.tensor(kind.array(n, d)), trial.tensor(kind.rng.standard_normal((n, d)))
    cut = 1 + trial.draw(sizes(0, 100)) % (n - 1)
    parts = [(slice(None), n), (slice(0, cut), cut), (slice(cut, None), n - cut)]
    found = [_judged(trial, MSE_LOSS, {"prediction": prediction[p], "target": target[p]}) for p, _ in parts]
    weights = np.array([-1.0, cut / n, (n - cut) / n])
    size = sum(abs(w) * (abs(r.exact) + r.bound) for w, (_, r) in zip(weights, found, strict=True))
    bound = sum(abs(w) * r.bound for w, (_, r) in zip(weights, found, strict=True)) + 2.0**-50 * size
    law = Reference(np.zeros(()), np.asarray(bound), scale=float(size), constant=True)
    observed = trial.observe(weighted_sum, constant(torch.as_tensor(weights)), *(y for y, _ in found))
    trial.judge(observed, law, "the loss of all samples less the mean of its parts")


def multiplied(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """x times a number, in float64."""
    return x.double() * factor.double()


def _distance(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 3, 4))
    rng = trial.draw(values()).rng
    a, b = (trial.tensor(rng.integers(-8, 9, shape) / 4) for _ in range(2))
    shift, factor = trial.draw(choice(2.0, -4.0)), trial.draw(choice(2.0, 0.5, -4.0))
    plain, of_plain = _judged(trial, MSE_LOSS, {"prediction": a, "target": b})
    for what, y, t in (("exchanged", b, a), ("shifted", a + shift, b + shift)):
        other, of_other = _judged(trial, MSE_LOSS, {"prediction": y, "target": t})
        equal(trial, plain, other, of_plain, of_other, f"the loss of arguments {what}")
    scaled, of_scaled = _judged(trial, MSE_LOSS, {"prediction": factor * a, "target": factor * b})
    there = Reference(of_plain.exact * factor**2, of_plain.bound * factor**2)
    moved = trial.observe(multiplied, plain, constant(torch.tensor(factor**2, dtype=torch.float64)))
    equal(trial, moved, scaled, there, of_scaled, "the loss of arguments scaled")


def _long_sums(trial: Trial) -> None:
    """Squares of which each is within the range of fp16, or all but one are, while the sum is not and the mean is."""
    n, rng = trial.draw(sizes(4, 40)), trial.draw(values()).rng
    size = rng.integers(150, 250, (n, 1))
    if trial.draw(st.booleans()):
        size = np.where(np.arange(n)[:, None] == rng.integers(0, n), 300, size // 5)
    error = rng.choice([-1.0, 1.0], (n, 1)) * size
    target = rng.integers(-100, 100, (n, 1))
    judge_with_gradients(trial, MSE_LOSS, {"prediction": trial.tensor(target + error), "target": trial.tensor(target)})


def _identity(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 3, 4))
    kind = trial.draw(values())
    x, fx = trial.tensor(kind.array(*shape)), trial.tensor(1.0 + np.abs(kind.rng.standard_normal(shape)))
    _judged(trial, RESIDUAL, {"x": x, "fx": fx, "scale": trial.draw(choice(1.0, -0.5, 3.0))})
    nothing: tuple[dict[str, Any], ...] = ({"fx": torch.zeros_like(fx)}, {"fx": fx, "scale": 0.0})
    y = trial.call({"x": x, **trial.draw(choice(0, 1).map(nothing.__getitem__))}).result
    same = torch.equal(y.value, x)
    trial.require(same, "an input to which nothing is added has changed", f"torch.equal({y.expression}, {literal(x)})")


def _scaled_branch(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 2, 4))
    rng = trial.draw(values()).rng
    side = rng.choice([-1.0, 1.0], shape)
    fx = trial.tensor(side * rng.integers(40000, 60000, shape))
    x = trial.tensor(-side * rng.integers(40000, 60000, shape))
    judge_with_gradients(trial, RESIDUAL, {"x": x, "fx": fx, "scale": 2.0})


CHECKS = (
    check("mse_loss.partition", _partition, dtypes=("fp64", "fp32", "bf16")),
    check("mse_loss.distance", _distance, dtypes=("fp64", "fp32")),
    check("mse_loss.range", _long_sums, dtypes=("fp16",)),
    check("residual.identity", _identity),
    check("residual.range", _scaled_branch, dtypes=("fp16",)),
)
