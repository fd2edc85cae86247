"""The warmup with a cosine after it: its record and its laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.spec.optimization.warmup_cosine import warmup_cosine
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
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
    rising_then_falling,
    steps_around,
    warmup_arguments,
)
from veriformer.verify.strategies import choice, sizes, values


def draw_warmup_cosine(trial: Trial) -> Arguments:
    """Draw steps around the end of the warmup and of the training."""
    rng = trial.draw(values()).rng
    warm, total = lengths(rng)
    steps = steps_around(rng, warm, total, (warm + total) // 2)
    return {**warmup_arguments("warmup_cosine", steps, trial.draw(choice(*RATES)), warm), "total_steps": total}


_COSINE = {**warmup_arguments("warmup_cosine", (3, 0, 9, 12, 40), 0.1, 7), "total_steps": 19}


WARMUP_COSINE = record_of(
    "warmup_cosine",
    draw_warmup_cosine,
    warmup_cosine,
    sample_basic=lambda trial: _COSINE,
    invalid_calls=refusals_of(_COSINE, {"warmup_steps": BAD_INT, "max_lr": (None, True), "total_steps": (6, *BAD_INT)}),
    argument_perturbations=changes_of(_COSINE, step=(4, 1, 8, 13, 3), max_lr=0.2, warmup_steps=5, total_steps=22),
    convention_kwargs=first_step,
)


def mirrored(rates: torch.Tensor) -> torch.Tensor:
    """Return the sums of the first rate and the last, the second and the last but one, and so on."""
    return rates + rates.flip(0)


def _decaying(trial: Trial, least: int) -> dict[str, Any]:
    W = trial.draw(sizes(0, 9))
    T = W + trial.draw(sizes(least, 12))
    max_lr = trial.draw(choice(*LAW_RATES))
    return {"schedule": "warmup_cosine", "max_lr": max_lr, "warmup_steps": W, "total_steps": T}


def _pieces(trial: Trial) -> None:
    a = _decaying(trial, 1)
    W, T, max_lr = a["warmup_steps"], a["total_steps"], a["max_lr"]
    rates, reference = rates_of(trial, WARMUP_COSINE, {"step": tuple(range(T + 3)), **a})
    rising_then_falling(trial, rates, reference, W, max_lr)
    top = Observation(rates.value[W], f"{rates.expression}[{W}]")
    trial.assert_within_bound(
        top, Reference(np.asarray(max_lr), reference.bound[W]), "the rate at the end of the warmup"
    )


def _symmetry(trial: Trial) -> None:
    a = _decaying(trial, 2)
    steps = tuple(range(a["warmup_steps"], a["total_steps"] + 1))
    rates, reference = rates_of(trial, WARMUP_COSINE, {"step": steps, **a})
    bound = reference.bound + reference.bound[::-1] + a["max_lr"] * 2.0**-50
    law = Reference(np.full(len(steps), a["max_lr"]), bound, constant=True)
    trial.assert_within_bound(trial.observe(mirrored, rates), law, "the sum of two rates that mirror one another")


def _end(trial: Trial) -> None:
    a = _decaying(trial, 2)
    T = a["total_steps"]
    rates, _ = rates_of(trial, WARMUP_COSINE, {"step": (T - 1, T, T + 1, 2 * T - a["warmup_steps"], 3 * T + 1), **a})
    e = rates.expression
    trial.assert_true(bool((rates.value[1:] == 0).all()), "the rate is not 0 at the end", f"bool(({e}[1:] == 0).all())")
    trial.assert_true(bool(rates.value[0] > 0), "the rate is 0 before the end", f"bool({e}[0] > 0)")


CHECKS = (
    check("warmup_cosine.pieces", _pieces, **IN_FP64),
    check("warmup_cosine.symmetry", _symmetry, **IN_FP64),
    check("warmup_cosine.end", _end, **IN_FP64),
    check("warmup_cosine.linear_in_rate", linear_in_rate_law(WARMUP_COSINE), **IN_FP64),
    check("warmup_cosine.first_step", first_step_law(WARMUP_COSINE), **BY_CONVENTION),
)
