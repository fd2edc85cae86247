"""The laws that the MLP, the feed-forward network and SwiGLU all keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.check import Check
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees, call_within_bound, gradients_agree
from veriformer.verify.laws.equality import equal, stays_finite
from veriformer.verify.laws.family import check, on
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.layers.two_layers import gated, network
from veriformer.verify.strategies import choice, sizes, values


def _hidden_order(operation: OpInfo, trial: Trial) -> None:
    d, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(2, 6)), trial.draw(sizes(1, 4))
    a: dict[str, Any] = (gated if operation.name == "swiglu" else network)(trial, (trial.draw(sizes(1, 3)),), d, f, o)
    order = torch.as_tensor(trial.draw(values()).rng.permutation(f))
    columns, rows = (("w_gate", "w_up"), ("w_down",)) if operation.name == "swiglu" else (("w1", "b1"), ("w2",))
    moved = {name: a[name][..., order] for name in columns} | {name: a[name][order] for name in rows}
    first, of_first = call_within_bound(trial, operation, a)
    second, of_second = call_within_bound(trial, operation, {**a, **moved})
    equal(trial, first, second, of_first, of_second, "hidden units in another order")


def _range(operation: OpInfo, trial: Trial) -> None:
    """Check hidden values of 1e5 and more, all positive, and a result in fp16's range, if only with its last bias."""
    rng = trial.draw(values()).rng
    d, f, o = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3))
    signs = rng.choice([-1.0, 1.0], d)
    x, down = signs * rng.integers(200, 256, (2, d)), rng.choice([-1.0, 1.0], o) * rng.uniform(0.5, 1.0, (f, o)) / 256
    weights: dict[str, Any]
    if operation.name == "swiglu":
        gate, up = (signs[:, None] * rng.uniform(1.5, 2, (d, f)) for _ in range(2))
        weights = {"w_gate": gate, "w_up": up, "w_down": down}
    else:
        w1 = signs[:, None] * rng.integers(300, 400, (d, f))
        weights = {"w1": w1, "b1": np.zeros(f), "w2": down, "b2": np.ones(o)}
        if trial.draw(choice(False, True)):
            weights |= _brought_back(np.abs(x), np.abs(w1), np.sign(down))
    arguments = {name: trial.tensor(value) for name, value in {"x": x, **weights}.items()}
    activation = {} if operation.name == "swiglu" else trial.option("activation", None, "relu", "gelu")
    call_within_bound(trial, operation, {**arguments, **activation})


def _brought_back(x: np.ndarray, w1: np.ndarray, signs: np.ndarray) -> dict[str, Any]:
    """Return last weights for products of 7e4 to 1e5, of these signs, and biases of the other sign."""
    hidden = (x @ w1).sum(-1).max()
    return {"w2": 9e4 / hidden * signs, "b2": -5e4 * signs[0]}


def _limits(operation: OpInfo, trial: Trial) -> None:
    """Check hidden values far from zero on either side, before the activation."""
    size = trial.draw(choice(100.0, 40.0, *(() if trial.dtype_name == "fp16" else (1000.0,))))
    n, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(1, 4)), trial.draw(sizes(1, 3))
    rng = trial.draw(values()).rng
    x, down = rng.uniform(1.0, 2.0, (n, 1)), rng.uniform(-1, 1, (f, o))
    large = size * rng.choice([-1.0, 1.0], (1, f))
    if operation.name == "swiglu":
        weights = {"w_gate": large, "w_up": rng.uniform(0.5, 1.0, (1, f)), "w_down": down}
    else:
        weights = {"w1": large, "b1": rng.standard_normal(f), "w2": down, "b2": rng.standard_normal(o)}
    a: dict[str, Any] = {name: trial.tensor(value) for name, value in {"x": x, **weights}.items()}
    if operation.name != "swiglu":
        a |= trial.option("activation", "sigmoid", None, "tanh", "sigmoid", "gelu")
    cotangent = draw_cotangent(trial, (n, o))
    outcome = trial.call(a, wrt=("x", *weights), cotangent=cotangent)
    references = operation.exact(trial, a, use_exact_oracle=False)
    agrees(trial, operation, a, outcome, references)
    gradients = operation.exact_gradients(trial, a, cotangent, use_exact_oracle=False)
    gradients_agree(trial, outcome, gradients)
    stays_finite(trial, outcome.result, references[0], "the result far from zero")
    for name in outcome.gradients:
        stays_finite(trial, outcome.gradient(name), gradients[name], f"the gradient of {name} far from zero")


ALGEBRA = ("fp64", "fp32")


def laws_of_two_layers(operation: OpInfo) -> tuple[Check, ...]:
    """Return the laws that every network of two layers keeps."""
    return (
        check(f"{operation.name}.hidden_order", on(operation, _hidden_order), dtypes=ALGEBRA),
        check(f"{operation.name}.range", on(operation, _range), dtypes=("fp16",)),
        check(f"{operation.name}.limits", on(operation, _limits)),
    )
