"""The schedules as records: the rates of several steps at once, in fp64, as the floats they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from veriformer.spec.optimization.noam import noam
from veriformer.spec.optimization.warmup import warmup
from veriformer.spec.optimization.warmup_cosine import warmup_cosine
from veriformer.verify.claims import Claims
from veriformer.verify.operation import Formula, Operation, Refusal
from veriformer.verify.strategies import choice, values
from veriformer.verify.trial import Arguments, Trial

RATES = (1.0, 3e-4, 0.1, 6.25e-5, 7.0, 0.0)
"""Largest rates."""


def steps_around(rng: np.random.Generator, *joints: int, least: int = 0) -> tuple[int, ...]:
    """Steps at the joints, next to them, between them and far beyond, in any order."""
    near = [joint + k for joint in joints for k in (-1, 0, 1)]
    between = [int(rng.integers(0, max(joints) + 2)) for _ in range(3)]
    found = {least, least + 1, *near, *between, 3 * max(joints) + 7}
    return tuple(int(t) for t in rng.permutation(sorted(t for t in found if t >= least)))


def lengths(rng: np.random.Generator) -> tuple[int, int]:
    """Steps of warmup and in all: none, few, many, and as many of one as of the other."""
    warm = int(rng.choice([0, 1, 2, 3, 7, 10, 100, 4000]))
    return warm, warm + int(rng.choice([0, 1, 2, 3, 6, 90, 1000]))


def draw_warmup(trial: Trial) -> Arguments:
    """Steps around the end of the warmup."""
    rng = trial.draw(values()).rng
    warm, _ = lengths(rng)
    return _arguments("warmup", steps_around(rng, warm), trial.draw(choice(*RATES)), warm)


def draw_warmup_cosine(trial: Trial) -> Arguments:
    """Steps around the end of the warmup and of the training."""
    rng = trial.draw(values()).rng
    warm, total = lengths(rng)
    steps = steps_around(rng, warm, total, (warm + total) // 2)
    return {**_arguments("warmup_cosine", steps, trial.draw(choice(*RATES)), warm), "total_steps": total}


def draw_noam(trial: Trial) -> Arguments:
    """Steps around the end of the warmup."""
    rng = trial.draw(values()).rng
    warm = int(rng.choice([1, 2, 3, 5, 16, 100, 4000]))
    width = int(rng.choice([512, 1, 2, 3, 64, 768]))
    return {
        "step": steps_around(rng, warm, least=1),
        "schedule": "noam",
        "d_model": width,
        "warmup_steps": warm,
    }


def _arguments(schedule: str, step: Sequence[int], max_lr: float, warmup_steps: int) -> dict[str, Any]:
    return {"step": tuple(step), "schedule": schedule, "max_lr": max_lr, "warmup_steps": warmup_steps}


def _rates(formula: Callable[..., Any]) -> Formula:
    """The rates of all steps. Where it is claimed, the first step of the warmup counts as step one."""

    def rates(xp: Any, a: Mapping[str, Any]) -> list[Any]:
        options = {key: a[key] for key in ("max_lr", "warmup_steps", "total_steps", "d_model") if key in a}
        early = a["warmup_steps"] if a.get("first_step") == "one" else 0
        rising = {key: options[key] for key in ("max_lr", "warmup_steps") if key in options}
        found = [warmup(xp, t + 1, **rising) if t < early else formula(xp, t, **options) for t in a["step"]]
        return [xp.stack([xp.asarray(rate) for rate in found])]

    return rates


def _first_step(claims: Claims) -> dict[str, Any]:
    return {"first_step": claims.convention("warmup.first_step")}


_INT = (-1, 1.5, None, True)


def _refusals(good: Arguments, bad: Mapping[str, Sequence[Any]]) -> Callable[[Trial], Iterator[Refusal]]:
    def refusals(trial: Trial) -> Iterator[Refusal]:
        for key, options in {"step": (_INT if "max_lr" in good else (0, *_INT)), **bad}.items():
            names = ("total_steps", "warmup_steps") if key == "total_steps" else (key,)
            for value in options:
                yield Refusal(f"{key} = {value!r}", {**good, key: (value,) if key == "step" else value}, names)

    return refusals


def _changes(a: Arguments, **others: Any) -> Callable[[Trial], tuple[Arguments, dict[str, Arguments]]]:
    return lambda trial: (a, {key: {**a, key: value} for key, value in others.items()})


def _double(trial: Trial, arguments: Arguments, part: int) -> torch.dtype:
    return torch.float64


def _record(name: str, draw: Callable[[Trial], Arguments], formula: Callable[..., Any], **rest: Any) -> Operation:
    return Operation(name=name, draw=draw, formulas=(_rates(formula),), result_dtype=_double, dtypes=("fp64",), **rest)


_WARMUP = _arguments("warmup", (3, 0, 9), 0.1, 7)
_COSINE = {**_arguments("warmup_cosine", (3, 0, 9, 12, 40), 0.1, 7), "total_steps": 19}
_NOAM = {"step": (3, 1, 9), "schedule": "noam", "d_model": 64, "warmup_steps": 7}

WARMUP = _record(
    "warmup",
    draw_warmup,
    warmup,
    ordinary=lambda trial: _WARMUP,
    refusals=_refusals(_WARMUP, {"warmup_steps": _INT, "max_lr": (None, True)}),
    changes=_changes(_WARMUP, step=(4, 1, 9), max_lr=0.2, warmup_steps=5),
    reading=_first_step,
)
WARMUP_COSINE = _record(
    "warmup_cosine",
    draw_warmup_cosine,
    warmup_cosine,
    ordinary=lambda trial: _COSINE,
    refusals=_refusals(_COSINE, {"warmup_steps": _INT, "max_lr": (None, True), "total_steps": (6, *_INT)}),
    changes=_changes(_COSINE, step=(4, 1, 8, 13, 3), max_lr=0.2, warmup_steps=5, total_steps=22),
    reading=_first_step,
)
NOAM = _record(
    "noam",
    draw_noam,
    noam,
    ordinary=lambda trial: _NOAM,
    refusals=_refusals(_NOAM, {"d_model": (0, *_INT), "warmup_steps": (0, *_INT)}),
    changes=_changes(_NOAM, step=(4, 2, 8), d_model=128, warmup_steps=5),
)
SCHEDULES = (WARMUP, WARMUP_COSINE, NOAM)
"""In the contract's order."""
