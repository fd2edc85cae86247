"""The schedule of the first Transformer: its record and its laws."""

from __future__ import annotations

from collections.abc import Callable

import torch

from veriformer.spec.optimization.noam import noam
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import equal
from veriformer.verify.laws.family import check
from veriformer.verify.operations.optimization.schedules import (
    BAD_INT,
    IN_FP64,
    changes_of,
    rates_of,
    record_of,
    refusals_of,
    rising_then_falling,
    steps_around,
)
from veriformer.verify.strategies import choice, sizes, values


def draw_noam(trial: Trial) -> Arguments:
    """Draw steps around the end of the warmup."""
    rng = trial.draw(values()).rng
    warm = int(rng.choice([1, 2, 3, 5, 16, 100, 4000]))
    width = int(rng.choice([512, 1, 2, 3, 64, 768]))
    return {
        "step": steps_around(rng, warm, least=1),
        "schedule": "noam",
        "d_model": width,
        "warmup_steps": warm,
    }


_NOAM = {"step": (3, 1, 9), "schedule": "noam", "d_model": 64, "warmup_steps": 7}


NOAM = record_of(
    "noam",
    draw_noam,
    noam,
    sample_basic=lambda trial: _NOAM,
    invalid_calls=refusals_of(_NOAM, {"d_model": (0, *BAD_INT), "warmup_steps": (0, *BAD_INT)}),
    argument_perturbations=changes_of(_NOAM, step=(4, 2, 8), d_model=128, warmup_steps=5),
)


def doubled(rates: torch.Tensor) -> torch.Tensor:
    """Return twice the rates."""
    return 2 * rates


def _peak(trial: Trial) -> None:
    W, d = trial.draw(sizes(1, 9)), trial.draw(choice(512, 3, 64, 2, 768))
    a: Arguments = {"schedule": "noam", "d_model": d, "warmup_steps": W, "step": tuple(range(1, 3 * W + 4))}
    rates, reference = rates_of(trial, NOAM, a)
    rising_then_falling(trial, rates, reference, W - 1, 1.0)
    peak, bound = trial.xp.judgeable(1 / trial.xp.sqrt(trial.xp.asarray(d * W)))
    top = Observation(rates.value[W - 1], f"{rates.expression}[{W - 1}]")
    trial.assert_within_bound(top, Reference(peak, bound + reference.bound[W - 1]), "the rate at the end of the warmup")


def _halved(**times: int) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        a = NOAM.sample(trial)
        b = {**a, **{key: factor * a[key] for key, factor in times.items()}}
        if "warmup_steps" in times:
            b["step"] = tuple(4 * t for t in a["step"])
        (one, of_one), (half, of_half) = rates_of(trial, NOAM, a), rates_of(trial, NOAM, b)
        twice = Reference(2 * of_half.exact, 2 * of_half.bound)
        equal(trial, one, trial.observe(doubled, half), of_one, twice, f"rates for {b}")

    return body


CHECKS = (
    check("noam.peak", _peak, **IN_FP64),
    check("noam.width", _halved(d_model=4), **IN_FP64),
    check("noam.stretch", _halved(warmup_steps=4), **IN_FP64),
)
