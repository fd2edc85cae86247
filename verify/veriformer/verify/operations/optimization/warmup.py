"""The warmup: its record and its laws."""

from __future__ import annotations

import numpy as np

from veriformer.spec.optimization.warmup import warmup
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check
from veriformer.verify.operations.optimization.schedules import (
    BAD_INT,
    BY_CONVENTION,
    IN_FP64,
    LAW_RATES,
    RATES,
    changes_of,
    first_step,
    first_step_law,
    lengths,
    linear_in_rate_law,
    rates_of,
    record_of,
    refusals_of,
    slope_bounds,
    slopes,
    steps_around,
    warmup_arguments,
)
from veriformer.verify.strategies import choice, sizes, values


def draw_warmup(trial: Trial) -> Arguments:
    """Draw steps around the end of the warmup."""
    rng = trial.draw(values()).rng
    warm, _ = lengths(rng)
    return warmup_arguments("warmup", steps_around(rng, warm), trial.draw(choice(*RATES)), warm)


_WARMUP = warmup_arguments("warmup", (3, 0, 9), 0.1, 7)


WARMUP = record_of(
    "warmup",
    draw_warmup,
    warmup,
    sample_basic=lambda trial: _WARMUP,
    invalid_calls=refusals_of(_WARMUP, {"warmup_steps": BAD_INT, "max_lr": (None, True)}),
    argument_perturbations=changes_of(_WARMUP, step=(4, 1, 9), max_lr=0.2, warmup_steps=5),
    convention_kwargs=first_step,
)


def _line(trial: Trial) -> None:
    W, max_lr = trial.draw(sizes(2, 12)), trial.draw(choice(*LAW_RATES))
    a: Arguments = {"schedule": "warmup", "step": tuple(range(W)), "max_lr": max_lr, "warmup_steps": W}
    rates, reference = rates_of(trial, WARMUP, a)
    line = Reference(np.full(W - 1, max_lr / W), slope_bounds(reference) + max_lr / W * 2.0**-50, constant=True)
    trial.assert_within_bound(trial.observe(slopes, rates), line, "what a step of the warmup adds")
    after = {**a, "step": (W, W + 1, 5 * W)}
    rates, reference = rates_of(trial, WARMUP, after)
    trial.assert_within_bound(
        rates, Reference(np.full(3, max_lr), reference.bound, constant=True), "the rate after the warmup"
    )


CHECKS = (
    check("warmup.line", _line, **IN_FP64),
    check("warmup.linear_in_rate", linear_in_rate_law(WARMUP), **IN_FP64),
    check("warmup.first_step", first_step_law(WARMUP), **BY_CONVENTION),
)
