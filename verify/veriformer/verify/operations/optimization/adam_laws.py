"""The laws that Adam and AdamW keep: bounds and scales of their steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.judge import Floats, Reference
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import between, constant, equal
from veriformer.verify.laws.family import check, over
from veriformer.verify.operations.optimization.optimizer_formulas import denominator
from veriformer.verify.operations.optimization.optimizer_laws import (
    IN_TWO_FORMATS,
    ends_at,
    laws_of_optimizers,
    long_run,
    select_steps,
)
from veriformer.verify.operations.optimization.optimizers import moderate
from veriformer.verify.strategies import choice, extent, sizes, values


def draw_adaptive(trial: Trial, operation: OpInfo, *, decay: bool, steps: int = 8) -> dict[str, Any]:
    """Draw a run of two parameters with gradients that are nowhere near zero."""
    rng = trial.draw(values()).rng
    T = trial.draw(sizes(1, steps))
    params = [trial.tensor(rng.choice([0.0, 1.0]) * rng.standard_normal(shape)) for shape in ((2,), (3, 1))]
    grads = [moderate(trial, (T, *p.shape), rng) for p in params]
    a: dict[str, Any] = {"params": params, "lr": trial.draw(choice(0.125, 0.1, 1e-3)), "optimizer": operation.name}
    a |= {"grads": grads, **trial.option("betas", None, (0.5, 0.75), (0.0, 0.99), (0.95, 0.9))}
    if decay and trial.draw(choice(True, False)):
        return a
    return a | {"weight_decay": 0.0}


def _constant_gradient(operation: OpInfo) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        a = draw_adaptive(trial, operation, decay=False)
        size = 10.0 ** trial.draw(choice(0, -4, -2, 3))
        a["grads"] = [trial.tensor(size * array(g[:1])).expand(g.shape).contiguous() for g in a["grads"]]
        a |= trial.option("eps", None, 0.0, 1e-3, 0.5)

        def law(xp: RunningError, lifted: Mapping[str, Any], i: int) -> Any:
            theta, g = lifted["params"][i], lifted["grads"][i][0]
            (_, beta), eps = _constants(lifted)
            for t in range(len(a["grads"][0])):
                theta = theta - _step(xp, g, eps, beta ** (t + 1), lifted["eps_place"]) * a["lr"]
            return theta

        ends_at(operation, trial, a, law)

    return body


def _constants(lifted: Mapping[str, Any]) -> tuple[tuple[float, float], float]:
    """Return β₁, β₂ and ε of a call, those that were measured where the signature hides them."""
    return lifted.get("betas", (0.9, 0.999)), lifted.get("eps", 1e-8)


def _step(xp: RunningError, g: Any, eps: float, unseen: float, place: str) -> Any:
    """Return one step in units of the learning rate: g / (|g| + ε), or with ε where it is claimed to be."""
    if place == "inside":
        return g / xp.sqrt(g * g + eps)
    return g / (abs(g) + (eps / (1 - unseen) ** 0.5 if place == "hat" else eps))


_MANY = (257, 5000)
"""Range of the number of steps: beyond 8 bits, and often beyond the integers exact in 11 bits."""


def _long_run(operation: OpInfo, trial: Trial) -> None:
    if trial.draw(choice(False, True)):
        _equal_gradients(operation, trial)
    else:
        long_run(operation, trial)


def _equal_gradients(operation: OpInfo, trial: Trial) -> None:
    g, steps = moderate(trial, (1,), trial.draw(values()).rng), trial.draw(extent(*_MANY))
    a: dict[str, Any] = {"params": [trial.tensor(0.0)], "lr": trial.draw(choice(0.125, 1e-3)), "weight_decay": 0.0}
    a |= {"optimizer": operation.name, "grads": [g.expand(steps).contiguous()]}
    observed = operation.parts(trial.call(a), a)[0]
    xp = over_float64(trial.dtype_name)
    end = -xp.sum(_equal_steps(xp, float(g), steps, operation.lift(trial, a, xp)) * a["lr"])
    trial.assert_within_bound(select_steps(observed, -1), Reference(*xp.judgeable(end)), "the end of many equal steps")


def _equal_steps(xp: RunningError, g: float, T: int, lifted: Mapping[str, Any]) -> Any:
    """Return steps 1 to T under one gradient in units of the learning rate, with what a run may lose in them.

    What an average adds up has one sign, so that roundings are relative errors of it: four a step at most, in either
    form, and those of the weight 1 − β of the newest value.
    """
    t, (betas, eps) = np.arange(1, T + 1), _constants(lifted)
    seen = [1 - _relative(xp, beta**t, 2 * t) for beta in betas]
    newest = [1 - xp.asarray(beta) for beta in betas]
    lost = [float(weight.error / weight.value) for weight in newest]
    m, v = (_relative(xp, x * (1 - beta**t), 4 * t + 8, w) for x, beta, w in zip((g, g * g), betas, lost, strict=True))
    return m / seen[0] / denominator(xp, v / seen[1], seen[1], eps, lifted["eps_place"])


def _relative(xp: RunningError, value: Any, roundings: Any, lost: float = 0.0) -> Any:
    """Return numbers after so many roundings, and after another relative error."""
    x = xp.asarray(value)
    gamma = roundings * xp.machine.u / (1 - roundings * xp.machine.u)
    x.error = np.abs(value) * ((1 + gamma) * (1 + lost) - 1)
    return x


def _scale(operation: OpInfo) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        a = draw_adaptive(trial, operation, decay=operation.name == "adamw")
        c, eps = 2.0 ** trial.draw(choice(4, -7, 10, 1)), trial.draw(choice(0.0, 2.0**-10, 1.0))
        squared = trial.claims.convention("adam.eps") == "inside"
        b = {**a, "grads": [g * c for g in a["grads"]], "eps": eps * (c * c if squared else c)}
        a["eps"] = eps
        runs = [operation.parts(trial.call(x), x) for x in (a, b)]
        references = [operation.exact(trial, x) for x in (a, b)]
        for one, other, of_one, of_other in zip(*runs, *references, strict=True):
            equal(trial, one, other, of_one, of_other, f"steps for gradients {c:g} times as large")

    return body


def steps_taken(run: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """Return the change of each step, in float64."""
    return torch.diff(run.double(), dim=0, prepend=start.double()[None])


def _step_bound(operation: OpInfo) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        a = draw_adaptive(trial, operation, decay=False) | {"eps": 1e-8}
        rng = trial.draw(values()).rng
        a["betas"] = trial.draw(choice((0.9, 0.999), (0.5, 0.75), (0.9, 0.9), (0.0, 0.99)))
        a["params"] = [trial.tensor(3.0 + rng.random(p.shape)) for p in a["params"]]
        a["grads"] = [trial.tensor(array(g) * 10.0 ** rng.choice([-5.0, 0.0, 4.0], g.shape)) for g in a["grads"]]
        limits = a["lr"] * _longest(a["betas"], len(a["grads"][0]))
        references = operation.exact(trial, a)
        for p, observed, run in zip(a["params"], operation.parts(trial.call(a), a), references, strict=True):
            limit = np.array(np.broadcast_to(limits.reshape(-1, *[1] * p.ndim), run.exact.shape))
            slack = run.bound + np.concatenate([np.zeros((1, *p.shape)), run.bound[:-1]])
            x = trial.observe(steps_taken, observed, constant(p))
            between(trial, x, -limit, limit, slack, "a step")

    return body


def _longest(betas: tuple[float, float], T: int) -> Floats:
    """Return the longest steps 1 to T in units of the learning rate, computed in float64 and so a little longer."""
    (beta_1, beta_2), k = betas, np.arange(T)
    ratios = ((1 - beta_1) * beta_1**k) ** 2 / ((1 - beta_2) * beta_2**k)
    longest = np.sqrt(np.cumsum(ratios) * (1 - beta_2 ** (k + 1))) / (1 - beta_1 ** (k + 1))
    return np.asarray(longest * (1 + 2.0**-40))


def _eps(operation: OpInfo) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        a = draw_adaptive(trial, operation, decay=False, steps=3)
        eps = trial.draw(choice(0.25, 1e-3, 1e-6))
        a |= {"eps": eps, "params": [torch.zeros_like(p) for p in a["params"]]}
        a["grads"] = [trial.tensor(eps * array(g)) for g in a["grads"]]
        agrees(trial, operation, a, trial.call(a), operation.exact(trial, a))

    return body


def laws_of_adam(operation: OpInfo) -> tuple[Check, ...]:
    """Return the laws that Adam and AdamW keep."""
    return (
        *laws_of_optimizers(operation),
        *over((operation,), "long_run", _long_run, effort=0.75),
        check(f"{operation.name}.constant_gradient", _constant_gradient(operation), **IN_TWO_FORMATS),
        check(f"{operation.name}.scale", _scale(operation), **IN_TWO_FORMATS),
        check(f"{operation.name}.step_bound", _step_bound(operation), **IN_TWO_FORMATS),
        check(f"{operation.name}.eps", _eps(operation), **IN_TWO_FORMATS, convention="adam.eps"),
    )
