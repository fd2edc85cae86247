"""Gradient descent: its record and its laws."""

from __future__ import annotations

from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check, over
from veriformer.verify.operations.optimization import optimizer_formulas as formulas
from veriformer.verify.operations.optimization.optimizer_laws import (
    IN_TWO_FORMATS,
    ends_at,
    laws_of_optimizers,
    long_run,
    options_of,
)
from veriformer.verify.operations.optimization.optimizers import changes_of, draw_run, record_of, refusals_of


def draw_gradient_descent(trial: Trial) -> Arguments:
    """Draw a run."""
    return draw_run("gradient_descent", trial)


GRADIENT_DESCENT = record_of(
    "gradient_descent",
    draw_gradient_descent,
    formulas.gradient_descent,
    invalid_calls=refusals_of("gradient_descent", {}),
    argument_perturbations=changes_of("gradient_descent"),
)


def _sum(trial: Trial) -> None:
    arguments = options_of(GRADIENT_DESCENT.sample(trial))
    ends_at(
        GRADIENT_DESCENT, trial, arguments, lambda xp, a, i: a["params"][i] - xp.sum(a["grads"][i], axis=0) * a["lr"]
    )


CHECKS = (
    *laws_of_optimizers(GRADIENT_DESCENT),
    *over((GRADIENT_DESCENT,), "long_run", long_run, effort=0.5),
    check("gradient_descent.sum", _sum, **IN_TWO_FORMATS),
)
