"""The MLP: its record and its laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.equality import assert_not_constant, constant, equal, inner, multiply, scale_bound
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.layers.two_layer_laws import ALGEBRA, laws_of_two_layers
from veriformer.verify.operations.layers.two_layers import (
    bias_in_the_sum,
    bias_in_the_sum_vjp,
    network,
)
from veriformer.verify.strategies import choice, sizes

MLP = operation(
    "mlp",
    also=(bias_in_the_sum("relu"),),
    also_gradients=(bias_in_the_sum_vjp("relu"),),
    use_exact_oracle=False,
    structural_dtypes=("fp32", "bf16"),
)


def _homogeneous(trial: Trial) -> None:
    a: dict[str, Any] = network(trial, (trial.draw(sizes(1, 3)),), 3, 5, trial.draw(sizes(1, 4)))
    a |= {
        "b1": torch.zeros_like(a["b1"]),
        "b2": torch.zeros_like(a["b2"]),
        **trial.option("activation", None, "relu"),
    }
    factor = trial.draw(choice(2.0, 0.5, 8.0))
    first, of_first = call_within_bound(trial, MLP, a)
    second, of_second = call_within_bound(trial, MLP, {**a, "x": factor * a["x"]})
    grown = trial.observe(multiply, first, constant(torch.tensor(factor, dtype=torch.float64)))
    there = Reference(of_first.exact * factor, of_first.bound * factor)
    equal(trial, grown, second, there, of_second, "a scaled input without biases")


def _balance(trial: Trial) -> None:
    """The result depends on x W₁ alone: ⟨W₁, dW₁⟩ = ⟨x, dx⟩; it is linear in W₂: ⟨W₂, dW₂⟩ = ⟨g, y − b₂⟩."""
    d, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(2, 5)), trial.draw(sizes(1, 4))
    a: dict[str, Any] = network(trial, (trial.draw(sizes(1, 3)),), d, f, o)
    a |= trial.option("activation", None, "sigmoid", "tanh", "gelu")
    result = MLP.exact(trial, a, use_exact_oracle=False)[0]
    g = draw_cotangent(trial, result.exact.shape)
    outcome = trial.call(a, wrt=("x", "w1", "w2"), cotangent=g)
    exact = MLP.exact_gradients(trial, a, g, use_exact_oracle=False)
    assert_not_constant(trial, outcome.gradient("w1"), exact["w1"], "gradient of w1")
    sizes_of = {name: np.abs(array(a[name])) for name in ("x", "w1", "w2")}
    spread = {name: float(scale_bound(exact[name].bound, size).sum()) for name, size in sizes_of.items()}
    first = (constant(a["w1"]), outcome.gradient("w1"), constant(a["x"]), outcome.gradient("x"))
    size = float((sizes_of["w1"] * np.abs(exact["w1"].exact)).sum())
    trial.assert_within_bound(
        trial.observe(inner, *first), _level(0.0, spread["w1"] + spread["x"], size), "⟨w1, dw1⟩ − ⟨x, dx⟩"
    )
    second = (constant(a["w2"]), outcome.gradient("w2"), constant(g), outcome.result)
    biased = np.abs(array(g)) * (np.abs(result.exact) + np.abs(array(a["b2"])))
    level = -float((array(g) * array(a["b2"])).sum())
    slack = spread["w2"] + float(scale_bound(result.bound, np.abs(array(g))).sum())
    trial.assert_within_bound(
        trial.observe(inner, *second), _level(level, slack, float(biased.sum())), "⟨w2, dw2⟩ − ⟨g, y⟩"
    )


def _level(exact: float, slack: float, size: float) -> Reference:
    """Return the reference of a sum of products of this total size: the slack, and the error of summing in float64."""
    bound = slack * (1 + 2.0**-40) + 2.0**-46 * size
    return Reference(np.asarray(exact), np.asarray(bound), scale=size, constant=True)


CHECKS = (
    *laws_of_two_layers(MLP),
    check("mlp.homogeneous", _homogeneous, dtypes=ALGEBRA),
    check("mlp.balance", _balance, dtypes=ALGEBRA),
)
