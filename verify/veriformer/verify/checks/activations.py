"""Laws of GELU and SiLU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from veriformer.verify.checks.agreement import agrees, gradients_agree
from veriformer.verify.checks.equation import draw_cotangent
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import difference, finite
from veriformer.verify.judge import Reference
from veriformer.verify.operation import Operation
from veriformer.verify.operations import GELU, SILU
from veriformer.verify.operations.activations import draw_gelu, draw_numbers, silu_by_tanh, silu_by_tanh_vjp
from veriformer.verify.strategies import choice, sizes, values
from veriformer.verify.trial import Arguments, Trial, array

_FAR_SILU = replace(SILU, formulas=(silu_by_tanh,), vjps=(silu_by_tanh_vjp,))
"""SiLU by a formula that holds far below zero, where e^{−x} overflows."""


def _apart(trial: Trial, operation: Operation, first: Arguments, second: Arguments, wanted: Any, what: str) -> None:
    """The difference of two results is known."""
    references = [operation.exact(trial, one, sharp=False)[0] for one in (first, second)]
    outcomes = [trial.call(one) for one in (first, second)]
    agrees(trial, operation, first, outcomes[0], references[:1])
    exact = references[0].exact - references[1].exact if wanted is None else wanted
    bound = (references[0].bound + references[1].bound) * (1 + 2.0**-50)
    law = Reference(exact, bound, constant=True)
    trial.judge(trial.observe(difference, *(one.result for one in outcomes)), law, what)


def _symmetry(operation: Operation, trial: Trial) -> None:
    arguments = dict((draw_gelu if operation is GELU else draw_numbers)(trial))
    x = arguments["x"] * trial.draw(choice(1.0, 1.0, 1e-3, 1e-6))  # near zero too, where half of x is the result
    _apart(trial, operation, {**arguments, "x": x}, {**arguments, "x": -x}, array(x), "f(x) − f(−x)")


def _tanh_distance(trial: Trial) -> None:
    rng = trial.draw(values()).rng
    n = trial.draw(sizes(2))
    x = trial.tensor(2.7 * rng.choice([-1.0, 1.0], n) + rng.uniform(-0.7, 0.7, n))
    exact, bent = {"x": x}, {"x": x, "approximate": "tanh"}
    _apart(trial, GELU, exact, bent, None, "the exact form less the tanh form")


def _limits(operation: Operation, trial: Trial) -> None:
    size = trial.draw(choice(100.0, 16.0, 40.0, 1000.0, 30000.0, *(() if trial.dtype_name == "fp16" else (1e10,))))
    rng = trial.draw(values()).rng
    n = trial.draw(sizes(2))
    x = size * rng.choice([-1.0, 1.0], n) * rng.uniform(1.0, 2.0, n)
    arguments = {"x": trial.tensor(x), **(trial.option("approximate", None, "tanh") if operation is GELU else {})}
    known = operation if operation is GELU else _FAR_SILU
    cotangent = draw_cotangent(trial, x.shape)
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    agrees(trial, known, arguments, outcome, known.exact(trial, arguments, sharp=False))
    for observed in (outcome.result, outcome.gradient("x")):
        finite(trial, observed, f"{observed.expression} far from zero")
    gradients_agree(trial, outcome, known.exact_gradients(trial, arguments, cotangent, sharp=False))


def _on(operation: Operation, body: Any) -> Any:
    return lambda trial: body(operation, trial)


CHECKS = (
    check("gelu.symmetry", _on(GELU, _symmetry)),
    check("gelu.limits", _on(GELU, _limits)),
    check("gelu.tanh_distance", _tanh_distance, dtypes=("fp64", "fp32")),
    check("silu.symmetry", _on(SILU, _symmetry)),
    check("silu.limits", _on(SILU, _limits)),
)
