"""The residual connection: its record and its laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.derived import operation
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, shapes, values

RESIDUAL = operation("residual", structural_dtypes=("fp32", "bf16"))


def _identity(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 3, 4))
    kind = trial.draw(values())
    x, fx = trial.tensor(kind.array(*shape)), trial.tensor(1.0 + np.abs(kind.rng.standard_normal(shape)))
    call_within_bound(trial, RESIDUAL, {"x": x, "fx": fx, "scale": trial.draw(choice(1.0, -0.5, 3.0))})
    nothing: tuple[dict[str, Any], ...] = ({"fx": torch.zeros_like(fx)}, {"fx": fx, "scale": 0.0})
    y = trial.call({"x": x, **trial.draw(choice(0, 1).map(nothing.__getitem__))}).result
    same = torch.equal(y.value, x)
    trial.assert_true(
        same, "an input to which nothing is added has changed", f"torch.equal({y.expression}, {literal(x)})"
    )


def _scaled_branch(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 2, 4))
    rng = trial.draw(values()).rng
    side = rng.choice([-1.0, 1.0], shape)
    fx = trial.tensor(side * rng.integers(40000, 60000, shape))
    x = trial.tensor(-side * rng.integers(40000, 60000, shape))
    judge_with_gradients(trial, RESIDUAL, {"x": x, "fx": fx, "scale": 2.0})


CHECKS = (
    check("residual.identity", _identity),
    check("residual.range", _scaled_branch, dtypes=("fp16",)),
)
