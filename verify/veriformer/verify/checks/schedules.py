"""Laws of the schedules: lines, peaks, ends and how rates scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import between, equal
from veriformer.verify.judge import Floats, Reference
from veriformer.verify.operation import Operation
from veriformer.verify.operations.schedules import NOAM, WARMUP, WARMUP_COSINE
from veriformer.verify.strategies import choice, sizes, values
from veriformer.verify.trial import Arguments, Observation, Trial

_RATES = (0.1, 3e-4, 7.0, 6.25e-5)


def slopes(rates: torch.Tensor) -> torch.Tensor:
    """What each step adds to the rate."""
    return torch.diff(rates)


def quadrupled(rates: torch.Tensor) -> torch.Tensor:
    """Four times the rates."""
    return 4 * rates


def doubled(rates: torch.Tensor) -> torch.Tensor:
    """Twice the rates."""
    return 2 * rates


def mirrored(rates: torch.Tensor) -> torch.Tensor:
    """The sums of the first rate and the last, the second and the last but one, and so on."""
    return rates + rates.flip(0)


def _ask(trial: Trial, operation: Operation, arguments: Arguments) -> tuple[Observation, Reference]:
    return trial.call(arguments).result, operation.exact(trial, arguments)[0]


def _of_slopes(reference: Reference) -> Floats:
    return np.asarray(reference.bound[1:] + reference.bound[:-1])


def _line(trial: Trial) -> None:
    W, max_lr = trial.draw(sizes(2, 12)), trial.draw(choice(*_RATES))
    a: Arguments = {"schedule": "warmup", "step": tuple(range(W)), "max_lr": max_lr, "warmup_steps": W}
    rates, reference = _ask(trial, WARMUP, a)
    line = Reference(np.full(W - 1, max_lr / W), _of_slopes(reference) + max_lr / W * 2.0**-50, constant=True)
    trial.judge(trial.observe(slopes, rates), line, "what a step of the warmup adds")
    after = {**a, "step": (W, W + 1, 5 * W)}
    rates, reference = _ask(trial, WARMUP, after)
    trial.judge(rates, Reference(np.full(3, max_lr), reference.bound, constant=True), "the rate after the warmup")


def _linear_in_rate(operation: Operation) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        a = {**operation.draw(trial), "max_lr": trial.draw(choice(*_RATES))}
        b = {**a, "max_lr": 4 * a["max_lr"]}
        (one, of_one), (four, of_four) = _ask(trial, operation, a), _ask(trial, operation, b)
        times = Reference(4 * of_one.exact, 4 * of_one.bound)
        equal(
            trial, trial.observe(quadrupled, one), four, times, of_four, "rates for a largest rate four times as large"
        )

    return body


def _decaying(trial: Trial, least: int) -> dict[str, Any]:
    W = trial.draw(sizes(0, 9))
    T = W + trial.draw(sizes(least, 12))
    max_lr = trial.draw(choice(*_RATES))
    return {"schedule": "warmup_cosine", "max_lr": max_lr, "warmup_steps": W, "total_steps": T}


def _rising_then_falling(trial: Trial, rates: Observation, reference: Reference, top: int, largest: float) -> None:
    """Judge that rates rise up to a step and fall after it."""
    sign = np.where(np.arange(len(reference.exact) - 1) < top, 1.0, -1.0)
    low, high = np.minimum(sign * largest, 0.0), np.maximum(sign * largest, 0.0)
    between(trial, trial.observe(slopes, rates), low, high, _of_slopes(reference), "what a step adds to the rate")


def _pieces(trial: Trial) -> None:
    a = _decaying(trial, 1)
    W, T, max_lr = a["warmup_steps"], a["total_steps"], a["max_lr"]
    rates, reference = _ask(trial, WARMUP_COSINE, {"step": tuple(range(T + 3)), **a})
    _rising_then_falling(trial, rates, reference, W, max_lr)
    top = Observation(rates.value[W], f"{rates.expression}[{W}]")
    trial.judge(top, Reference(np.asarray(max_lr), reference.bound[W]), "the rate at the end of the warmup")


def _symmetry(trial: Trial) -> None:
    a = _decaying(trial, 2)
    steps = tuple(range(a["warmup_steps"], a["total_steps"] + 1))
    rates, reference = _ask(trial, WARMUP_COSINE, {"step": steps, **a})
    bound = reference.bound + reference.bound[::-1] + a["max_lr"] * 2.0**-50
    law = Reference(np.full(len(steps), a["max_lr"]), bound, constant=True)
    trial.judge(trial.observe(mirrored, rates), law, "the sum of two rates that mirror one another")


def _end(trial: Trial) -> None:
    a = _decaying(trial, 2)
    T = a["total_steps"]
    rates, _ = _ask(trial, WARMUP_COSINE, {"step": (T - 1, T, T + 1, 2 * T - a["warmup_steps"], 3 * T + 1), **a})
    e = rates.expression
    trial.require(bool((rates.value[1:] == 0).all()), "the rate is not 0 at the end", f"bool(({e}[1:] == 0).all())")
    trial.require(bool(rates.value[0] > 0), "the rate is 0 before the end", f"bool({e}[0] > 0)")


def _peak(trial: Trial) -> None:
    W, d = trial.draw(sizes(1, 9)), trial.draw(choice(512, 3, 64, 2, 768))
    a: Arguments = {"schedule": "noam", "d_model": d, "warmup_steps": W, "step": tuple(range(1, 3 * W + 4))}
    rates, reference = _ask(trial, NOAM, a)
    _rising_then_falling(trial, rates, reference, W - 1, 1.0)
    peak, bound = trial.xp.judgeable(1 / trial.xp.sqrt(trial.xp.asarray(d * W)))
    top = Observation(rates.value[W - 1], f"{rates.expression}[{W - 1}]")
    trial.judge(top, Reference(peak, bound + reference.bound[W - 1]), "the rate at the end of the warmup")


def _halved(**times: int) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        a = NOAM.draw(trial)
        b = {**a, **{key: factor * a[key] for key, factor in times.items()}}
        if "warmup_steps" in times:
            b["step"] = tuple(4 * t for t in a["step"])
        (one, of_one), (half, of_half) = _ask(trial, NOAM, a), _ask(trial, NOAM, b)
        twice = Reference(2 * of_half.exact, 2 * of_half.bound)
        equal(trial, one, trial.observe(doubled, half), of_one, twice, f"rates for {b}")

    return body


def _first_step(operation: Operation) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        W = trial.draw(sizes(1, 9))
        rng = trial.draw(values()).rng
        a = {"schedule": operation.name, "max_lr": trial.draw(choice(*_RATES)), "warmup_steps": W}
        a |= {"total_steps": W + int(rng.integers(1, 9))} if operation is WARMUP_COSINE else {}
        arguments: Arguments = {"step": tuple(range(W + 1)), **a}
        agrees(trial, operation, arguments, trial.call(arguments), operation.exact(trial, arguments))

    return body


_ONE: dict[str, Any] = {"dtypes": ("fp64",), "effort": 0.5}
_CONVENTION: dict[str, Any] = {**_ONE, "convention": "warmup.first_step"}

CHECKS = (
    check("warmup.line", _line, **_ONE),
    check("warmup.linear_in_rate", _linear_in_rate(WARMUP), **_ONE),
    check("warmup.first_step", _first_step(WARMUP), **_CONVENTION),
    check("warmup_cosine.pieces", _pieces, **_ONE),
    check("warmup_cosine.symmetry", _symmetry, **_ONE),
    check("warmup_cosine.end", _end, **_ONE),
    check("warmup_cosine.linear_in_rate", _linear_in_rate(WARMUP_COSINE), **_ONE),
    check("warmup_cosine.first_step", _first_step(WARMUP_COSINE), **_CONVENTION),
    check("noam.peak", _peak, **_ONE),
    check("noam.width", _halved(d_model=4), **_ONE),
    check("noam.stretch", _halved(warmup_steps=4), **_ONE),
)
