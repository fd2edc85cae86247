"""Gradient descent with momentum: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.family import check, over
from veriformer.verify.operations.optimization import optimizer_formulas as formulas
from veriformer.verify.operations.optimization.optimizer_laws import (
    IN_TWO_FORMATS,
    ends_at,
    laws_of_optimizers,
    long_run,
    options_of,
)
from veriformer.verify.operations.optimization.optimizers import changes_of, draw_run, moderate, record_of, refusals_of
from veriformer.verify.strategies import choice, values
from veriformer.verify.targets.claims import Claims


def draw_sgd_momentum(trial: Trial) -> Arguments:
    """Draw a run with any β, 0 among them."""
    return draw_run("sgd_momentum", trial) | trial.option("beta", None, 0.5, 0.99, 0.0)


def _conventions(claims: Claims) -> dict[str, Any]:
    return {
        "first_velocity": claims.convention("sgd.first_velocity"),
        "gradient_weight": claims.convention("sgd.gradient_weight"),
    }


SGD_MOMENTUM = record_of(
    "sgd_momentum",
    draw_sgd_momentum,
    formulas.sgd_momentum,
    formulas.sgd_by_differences,
    invalid_calls=refusals_of("sgd_momentum", {"beta": (1.0, -0.1, 2.0, None, True, float("nan"))}),
    argument_perturbations=changes_of("sgd_momentum", beta=(0.5, 0.75)),
    convention_kwargs=_conventions,
)


def _closed_form(trial: Trial) -> None:
    arguments = options_of(SGD_MOMENTUM.sample(trial))
    beta, T = arguments.get("beta", 0.9), len(arguments["grads"][0])
    spent = np.array([1 - float(beta) ** (T - i) for i in range(T)])
    if trial.claims.convention("sgd.first_velocity") == "gradient":
        spent[0] /= 1 - beta
    if trial.claims.convention("sgd.gradient_weight") == "1":
        spent /= 1 - beta

    def law(xp: RunningError, a: Mapping[str, Any], i: int) -> Any:
        weights = spent.reshape(-1, *[1] * (a["grads"][i].ndim - 1))
        return a["params"][i] - xp.sum(a["grads"][i] * xp.asarray(weights), axis=0) * a["lr"]

    ends_at(SGD_MOMENTUM, trial, arguments, law)


def _of_first_velocity(trial: Trial) -> None:
    a = options_of(SGD_MOMENTUM.sample(trial))
    a |= {"beta": trial.draw(choice(0.9, 0.5, 0.99)), "params": [torch.zeros_like(p) for p in a["params"]]}
    a["grads"] = [moderate(trial, (2, *p.shape), trial.draw(values()).rng) for p in a["params"]]
    agrees(trial, SGD_MOMENTUM, a, trial.call(a), SGD_MOMENTUM.exact(trial, a))


def _of_gradient_weight(trial: Trial) -> None:
    a = options_of(SGD_MOMENTUM.sample(trial))
    a |= {"beta": trial.draw(choice(0.9, 0.5, 0.99)), "params": [torch.zeros_like(p) for p in a["params"]]}
    g = [moderate(trial, p.shape, trial.draw(values()).rng) for p in a["params"]]
    a["grads"] = [torch.stack([torch.zeros_like(x), x, torch.zeros_like(x)]) for x in g]  # the first is no first one
    agrees(trial, SGD_MOMENTUM, a, trial.call(a), SGD_MOMENTUM.exact(trial, a))


CHECKS = (
    *laws_of_optimizers(SGD_MOMENTUM),
    *over((SGD_MOMENTUM,), "long_run", long_run, effort=0.5),
    check("sgd_momentum.closed_form", _closed_form, **IN_TWO_FORMATS),
    check("sgd_momentum.first_velocity", _of_first_velocity, **IN_TWO_FORMATS, convention="sgd.first_velocity"),
    check("sgd_momentum.gradient_weight", _of_gradient_weight, **IN_TWO_FORMATS, convention="sgd.gradient_weight"),
)
