"""Draws and laws shared by the schedules: rates of several steps at once, in fp64, as the floats they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from veriformer.spec.optimization.warmup import warmup
from veriformer.verify.judging.judge import Floats, Reference
from veriformer.verify.judging.op_info import Formula, InvalidCall, OpInfo
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import between, equal
from veriformer.verify.strategies import choice, sizes, values
from veriformer.verify.targets.claims import Claims

RATES = (1.0, 3e-4, 0.1, 6.25e-5, 7.0, 0.0)
"""Largest rates."""


def steps_around(rng: np.random.Generator, *joints: int, least: int = 0) -> tuple[int, ...]:
    """Return steps at the joints, next to them, between them and far beyond, shuffled."""
    near = [joint + k for joint in joints for k in (-1, 0, 1)]
    between = [int(rng.integers(0, max(joints) + 2)) for _ in range(3)]
    found = {least, least + 1, *near, *between, 3 * max(joints) + 7}
    return tuple(int(t) for t in rng.permutation(sorted(t for t in found if t >= least)))


def lengths(rng: np.random.Generator) -> tuple[int, int]:
    """Draw steps of warmup and in all: none, or any number on the scale of logarithms."""
    warm, rest = (0 if rng.random() < 0.15 else int(most ** rng.random()) for most in (20_000, 200_000))
    return warm, warm + rest


def warmup_arguments(schedule: str, step: Sequence[int], max_lr: float, warmup_steps: int) -> dict[str, Any]:
    """Return the arguments of a warmup as a record takes them."""
    return {"step": tuple(step), "schedule": schedule, "max_lr": max_lr, "warmup_steps": warmup_steps}


def _rates(formula: Callable[..., Any]) -> Formula:
    """Return the rates of all steps. Where it is claimed, the first step of the warmup counts as step one."""

    def rates(xp: Any, a: Mapping[str, Any]) -> list[Any]:
        options = {key: a[key] for key in ("max_lr", "warmup_steps", "total_steps", "d_model") if key in a}
        early = a["warmup_steps"] if a.get("first_step") == "one" else 0
        rising = {key: options[key] for key in ("max_lr", "warmup_steps") if key in options}
        found = [warmup(xp, t + 1, **rising) if t < early else formula(xp, t, **options) for t in a["step"]]
        return [xp.stack([xp.asarray(rate) for rate in found])]

    return rates


def first_step(claims: Claims) -> dict[str, Any]:
    """Return the claimed number of the first step of the warmup."""
    return {"first_step": claims.convention("warmup.first_step")}


BAD_INT = (-1, 1.5, None, True)


def refusals_of(good: Arguments, bad: Mapping[str, Sequence[Any]]) -> Callable[[Trial], Iterator[InvalidCall]]:
    """Return each argument with values that the schedule refuses."""

    def refusals(trial: Trial) -> Iterator[InvalidCall]:
        for key, options in {"step": (BAD_INT if "max_lr" in good else (0, *BAD_INT)), **bad}.items():
            names = ("total_steps", "warmup_steps") if key == "total_steps" else (key,)
            for value in options:
                yield InvalidCall(f"{key} = {value!r}", {**good, key: (value,) if key == "step" else value}, names)

    return refusals


def changes_of(a: Arguments, **others: Any) -> Callable[[Trial], tuple[Arguments, dict[str, Arguments]]]:
    """Return a call, and the same with each of these arguments changed."""
    return lambda trial: (a, {key: {**a, key: value} for key, value in others.items()})


def _double(trial: Trial, arguments: Arguments, part: int) -> torch.dtype:
    return torch.float64


def record_of(name: str, draw: Callable[[Trial], Arguments], formula: Callable[..., Any], **rest: Any) -> OpInfo:
    """Return the record of a schedule."""
    return OpInfo(name=name, sample=draw, formulas=(_rates(formula),), result_dtype=_double, dtypes=("fp64",), **rest)


LAW_RATES = (0.1, 3e-4, 7.0, 6.25e-5)


def slopes(rates: torch.Tensor) -> torch.Tensor:
    """Return the change of the rate at each step."""
    return torch.diff(rates)


def quadrupled(rates: torch.Tensor) -> torch.Tensor:
    """Return four times the rates."""
    return 4 * rates


def rates_of(trial: Trial, operation: OpInfo, arguments: Arguments) -> tuple[Observation, Reference]:
    """Return the rates of a call, and their references."""
    return trial.call(arguments).result, operation.exact(trial, arguments)[0]


def slope_bounds(reference: Reference) -> Floats:
    """Return the bounds of differences of neighbouring rates."""
    return np.asarray(reference.bound[1:] + reference.bound[:-1])


def linear_in_rate_law(operation: OpInfo) -> Callable[[Trial], None]:
    """Return the law: four times the largest rate gives four times every rate."""

    def body(trial: Trial) -> None:
        a = {**operation.sample(trial), "max_lr": trial.draw(choice(*LAW_RATES))}
        b = {**a, "max_lr": 4 * a["max_lr"]}
        (one, of_one), (four, of_four) = rates_of(trial, operation, a), rates_of(trial, operation, b)
        times = Reference(4 * of_one.exact, 4 * of_one.bound)
        equal(
            trial, trial.observe(quadrupled, one), four, times, of_four, "rates for a largest rate four times as large"
        )

    return body


def rising_then_falling(trial: Trial, rates: Observation, reference: Reference, top: int, largest: float) -> None:
    """Judge that rates rise up to a step and fall after it."""
    sign = np.where(np.arange(len(reference.exact) - 1) < top, 1.0, -1.0)
    low, high = np.minimum(sign * largest, 0.0), np.maximum(sign * largest, 0.0)
    between(trial, trial.observe(slopes, rates), low, high, slope_bounds(reference), "what a step adds to the rate")


def first_step_law(operation: OpInfo) -> Callable[[Trial], None]:
    """Return the first steps of a warmup, which the target may claim to count from one."""

    def body(trial: Trial) -> None:
        W = trial.draw(sizes(1, 9))
        rng = trial.draw(values()).rng
        a = {"schedule": operation.name, "max_lr": trial.draw(choice(*LAW_RATES)), "warmup_steps": W}
        a |= {"total_steps": W + int(rng.integers(1, 9))} if operation.name == "warmup_cosine" else {}
        arguments: Arguments = {"step": tuple(range(W + 1)), **a}
        agrees(trial, operation, arguments, trial.call(arguments), operation.exact(trial, arguments))

    return body


IN_FP64: dict[str, Any] = {"dtypes": ("fp64",), "effort": 0.5}


BY_CONVENTION: dict[str, Any] = {**IN_FP64, "convention": "warmup.first_step"}
