"""Draws and laws shared by GELU and SiLU."""

from __future__ import annotations

from typing import Any

from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.equality import difference, finite
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.strategies import choice, leading_shapes, sizes, values


def draw_numbers(trial: Trial) -> Arguments:
    """Draw numbers near zero, near the bend, and far out; of any rank."""
    shape = trial.rows()
    shape = trial.draw(leading_shapes()) if shape is None else shape
    x = trial.draw(values()).array(*(shape or (1,))) * trial.draw(choice(1.0, 3.0, 0.25, 12.0))
    return {"x": trial.tensor(x if shape else x[0])}


def draw_gelu(trial: Trial) -> Arguments:
    """Draw numbers, and either form."""
    return {**draw_numbers(trial), **trial.option("approximate", None, "tanh", "none")}


def ordinary_numbers(trial: Trial) -> Arguments:
    """Draw Gaussian numbers."""
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(trial.draw(sizes(1, 3)), trial.draw(sizes(2))))}


def many_numbers(trial: Trial) -> Arguments:
    """Draw many numbers."""
    trial.only_large()
    shape = trial.rows((16, 10000), (16, 1000))
    assert shape is not None
    return {"x": trial.tensor(2.0 * trial.draw(values(("gaussian", "one-signed", "offset"))).array(*shape))}


def differ_by(trial: Trial, operation: OpInfo, first: Arguments, second: Arguments, wanted: Any, what: str) -> None:
    """Judge the difference of two results: wanted, or where None the difference of both references."""
    references = [operation.exact(trial, one, use_exact_oracle=False)[0] for one in (first, second)]
    outcomes = [trial.call(one) for one in (first, second)]
    agrees(trial, operation, first, outcomes[0], references[:1])
    exact = references[0].exact - references[1].exact if wanted is None else wanted
    bound = (references[0].bound + references[1].bound) * (1 + 2.0**-50)
    law = Reference(exact, bound, constant=True)
    trial.assert_within_bound(trial.observe(difference, *(one.result for one in outcomes)), law, what)


def symmetry_law(operation: OpInfo, trial: Trial) -> None:
    """f(x) − f(−x) = x."""
    arguments = dict((draw_gelu if operation.name == "gelu" else draw_numbers)(trial))
    x = arguments["x"] * trial.draw(choice(1.0, 1.0, 1e-3, 1e-6))  # near zero too, where half of x is the result
    differ_by(trial, operation, {**arguments, "x": x}, {**arguments, "x": -x}, array(x), "f(x) − f(−x)")


def limits_law(operation: OpInfo, trial: Trial) -> None:
    """Far from zero an activation is the identity, or 0; in fp16 as far as its products with gradients are finite."""
    size = trial.draw(choice(100.0, 16.0, 40.0, 1000.0, *(() if trial.dtype_name == "fp16" else (30000.0, 1e10))))
    rng = trial.draw(values()).rng
    n = trial.draw(sizes(2))
    x = size * rng.choice([-1.0, 1.0], n) * rng.uniform(1.0, 2.0, n)
    tensor = trial.tensor(x)
    option = trial.option("approximate", None, "tanh") if operation.name == "gelu" else {}
    arguments = {"x": tensor, **option}
    cotangent = draw_cotangent(trial, x.shape)
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    agrees(trial, operation, arguments, outcome, operation.exact(trial, arguments, use_exact_oracle=False))
    for observed in (outcome.result, outcome.gradient("x")):
        finite(trial, observed, f"{observed.expression} far from zero")
    gradients_agree(trial, outcome, operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False))
