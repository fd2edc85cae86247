"""Whole runs of the optimizers, step by step in the spec's formulas, under the conventions that a target may claim.

Averages have a second form, m + (1 − β)(x − m). Where β is small and x much smaller than m it cancels; a correct
implementation may compute it all the same. Where β is ½ or more, its bound is no larger, and it is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from veriformer.spec.optimization import adam as adam_formulas
from veriformer.spec.optimization import adamw as adamw_formulas
from veriformer.spec.optimization import gradient_descent as descent_formulas
from veriformer.spec.optimization import sgd_momentum as momentum_formulas
from veriformer.spec.optimization.averages import average, weight_so_far

Average = Callable[[Any, Any, Any, float], Any]


Step = Callable[[list[Any], list[Any]], list[Any]]


def towards(xp: Any, mean: Any, value: Any, beta: float) -> Any:
    """Return m + (1 − β)(x − m)."""
    return mean + (value - mean) * (1 - xp.asarray(beta))


def accumulate(xp: Any, velocity: Any, gradient: Any, beta: float) -> Any:
    """Compute β v + g, the average times 1 / (1 − β): the velocity of PyTorch's SGD."""
    return velocity * xp.asarray(beta) + gradient


def _run(xp: Any, a: Mapping[str, Any], states: list[Any], step: Step, theta: Callable[[Any], Any]) -> list[Any]:
    """Return the parameters after each step, [steps, *shape] each."""
    steps, missing = a["grads"][0].shape[0], a.get("missing", ())
    values: list[list[Any]] = [[] for _ in a["params"]]
    for t in range(steps):
        states = step(states, [None if (t, i) in missing else g[t] for i, g in enumerate(a["grads"])])
        for value, s in zip(values, states, strict=True):
            value.append(theta(s))
    return [xp.stack(value) for value in values]


def _each(update: Callable[[Any, Any], Any]) -> Step:
    return lambda states, grads: [s if g is None else update(s, g) for s, g in zip(states, grads, strict=True)]


def _theta(s: Any) -> Any:
    return s.theta


def gradient_descent(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Run equation 3 step by step."""

    def step(params: list[Any], grads: list[Any]) -> list[Any]:
        return descent_formulas.gradient_descent(xp, params, grads, lr=a["lr"])

    return _run(xp, a, list(a["params"]), step, lambda theta: theta)


def sgd_momentum(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Compute equations 5 and 6, step by step.

    By claim, the velocity starts at the first gradient, or takes the whole of each gradient in place of 1 − β of it.
    """
    if a.get("gradient_weight") == "1":
        return _momentum(xp, a, accumulate)
    if a.get("first_velocity") == "gradient":
        return _momentum(xp, a, average)

    def step(states: list[Any], grads: list[Any]) -> list[Any]:
        options = {"beta": a["beta"]} if "beta" in a else {}
        return momentum_formulas.sgd_momentum(xp, states, grads, lr=a["lr"], **options)

    return _run(xp, a, momentum_formulas.sgd_momentum_start(xp, a["params"]), step, _theta)


def sgd_by_differences(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return the run of SGD with averages in their second form, for β below 0.5."""
    averaged = a.get("gradient_weight") != "1"
    return _momentum(xp, a, towards) if averaged and a.get("beta", 0.9) < 0.5 else []


def _momentum(xp: Any, a: Mapping[str, Any], mean: Average) -> list[Any]:
    beta, undamped = a.get("beta", 0.9), a.get("first_velocity") == "gradient"

    def update(s: Any, g: Any) -> Any:
        # Undamped is also what starts at the first gradient and goes on from there, rounding β g + (1 − β) g.
        v = mean(xp, g if s.v is None else s.v, g, beta)
        return s._replace(theta=xp.asarray(s.theta) - v * a["lr"], v=v)

    states = momentum_formulas.sgd_momentum_start(xp, a["params"])
    return _run(xp, a, [s._replace(v=None) for s in states] if undamped else states, _each(update), _theta)


def adam(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Run equations 7 to 9 step by step; decay is L2."""
    return _adam(xp, a, adam_formulas.adam, decay=a.get("weight_decay", 0.0), decoupled=False)


def adamw(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Run Adam with decoupled decay, step by step."""
    return _adam(xp, a, adamw_formulas.adamw, decay=a.get("weight_decay", 0.01), decoupled=True)


def adam_by_differences(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return Adam with averages in their second form, for small β."""
    return _adam(xp, a, None, decay=a.get("weight_decay", 0.0), decoupled=False) if _small(a) else []


def adamw_by_differences(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return AdamW with averages in their second form, for small β."""
    return _adam(xp, a, None, decay=a.get("weight_decay", 0.01), decoupled=True) if _small(a) else []


def _small(a: Mapping[str, Any]) -> bool:
    return bool(min(a.get("betas", (0.9, 0.999))) < 0.5)


def _adam(xp: Any, a: Mapping[str, Any], formula: Any, *, decay: float, decoupled: bool) -> list[Any]:
    """Return the spec's formula where there is one and ε and the decay are where the contract has them; else its
    stages.
    """
    betas, eps, lr, place = a.get("betas", (0.9, 0.999)), a.get("eps", 1e-8), a["lr"], a.get("eps_place", "outside")
    after = a.get("decay_place") == "after"

    def of_the_spec(states: list[Any], grads: list[Any]) -> list[Any]:
        found: list[Any] = formula(xp, states, grads, lr=lr, betas=betas, eps=eps, weight_decay=decay)
        return found

    def update(s: Any, g: Any) -> Any:
        theta = kept = xp.asarray(s.theta)
        share = 1 - xp.asarray(lr) * decay if decay and decoupled else None
        if share is not None and not after:
            kept = theta * share
        elif decay and not decoupled:
            g = g + theta * decay
        mean = towards if formula is None else average
        m, v = (mean(xp, xp.asarray(old), new, b) for old, new, b in zip((s.m, s.v), (g, g * g), betas, strict=True))
        seen, seen_squared = (weight_so_far(xp, beta, s.t + 1) for beta in betas)
        step = m / seen / denominator(xp, v / seen_squared, seen_squared, eps, place)
        moved = kept - step * lr
        return s._replace(theta=moved * share if share is not None and after else moved, m=m, v=v, t=s.t + 1)

    step = of_the_spec if formula is not None and place == "outside" and not after else _each(update)
    return _run(xp, a, adam_formulas.adam_start(xp, a["params"]), step, _theta)


def denominator(xp: Any, v_hat: Any, seen: Any, eps: float, place: str) -> Any:
    """Return √v̂ and ε: outside the root; "hat", added to √v before the correction; or "inside", under the root."""
    if place == "inside":
        return xp.sqrt(v_hat + eps)
    return xp.sqrt(v_hat) + (eps / xp.sqrt(seen) if place == "hat" else eps)
