"""Whole runs of the optimizers, step by step in the spec's formulas, under the conventions that a target may claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from veriformer.spec.optimization import adam as adam_formulas
from veriformer.spec.optimization import gradient_flow, momentum, weight_decay
from veriformer.spec.optimization.averages import weight_so_far

Step = Callable[[list[Any], list[Any]], list[Any]]


def _run(xp: Any, a: Mapping[str, Any], states: list[Any], step: Step, theta: Callable[[Any], Any]) -> list[Any]:
    """The parameters after each step, [steps, *shape] each."""
    steps, missing = a["grads"][0].shape[0], a.get("missing", ())
    values: list[list[Any]] = [[] for _ in a["params"]]
    for t in range(steps):
        states = step(states, [None if (t, i) in missing else g[t] for i, g in enumerate(a["grads"])])
        for value, s in zip(values, states, strict=True):
            value.append(theta(s))
    return [xp.stack(value) for value in values]


def _moved(s: Any) -> Any:
    return s.theta


def gradient_descent(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Equation 3, step by step."""

    def step(params: list[Any], grads: list[Any]) -> list[Any]:
        return gradient_flow.gradient_descent(xp, params, grads, lr=a["lr"])

    return _run(xp, a, list(a["params"]), step, lambda theta: theta)


def sgd_momentum(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Equations 5 and 6, step by step. Where it is claimed, the first velocity is the first gradient."""
    options = {"beta": a["beta"]} if "beta" in a else {}
    undamped = a.get("first_velocity") == "gradient"

    def first(s: Any, g: Any) -> Any:
        if s.v is None and g is not None:  # the average of a gradient and itself is that gradient
            return s._replace(v=g)
        return s

    def step(states: list[Any], grads: list[Any]) -> list[Any]:
        if undamped:
            fresh = [s.v is None and g is not None for s, g in zip(states, grads, strict=True)]
            states = [first(s, g) for s, g in zip(states, grads, strict=True)]
            started = [_first_step(xp, s, a["lr"]) if new else s for s, new in zip(states, fresh, strict=True)]
            grads = [None if new else g for g, new in zip(grads, fresh, strict=True)]
            return momentum.sgd_momentum(xp, started, grads, lr=a["lr"], **options)
        return momentum.sgd_momentum(xp, states, grads, lr=a["lr"], **options)

    states = momentum.sgd_momentum_start(xp, a["params"])
    return _run(xp, a, [s._replace(v=None) for s in states] if undamped else states, step, _moved)


def _first_step(xp: Any, s: Any, lr: float) -> Any:
    return s._replace(theta=xp.asarray(s.theta) - s.v * lr)


def adam(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Equations 7 to 9, step by step; decay is L2."""
    return _adam(xp, a, adam_formulas.adam, _step_of_l2)


def adamw(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Adam's steps with decoupled decay."""
    return _adam(xp, a, weight_decay.adamw, _step_of_decoupled)


def _adam(xp: Any, a: Mapping[str, Any], formula: Callable[..., Any], claimed: Callable[..., Any]) -> list[Any]:
    options = {key: a[key] for key in ("betas", "eps", "weight_decay") if key in a}
    place = a.get("eps_place", "outside")

    def step(states: list[Any], grads: list[Any]) -> list[Any]:
        if place != "outside":
            return claimed(xp, states, grads, a["lr"], place, **options)
        found: list[Any] = formula(xp, states, grads, lr=a["lr"], **options)
        return found

    return _run(xp, a, adam_formulas.adam_start(xp, a["params"]), step, _moved)


def _step_of_l2(
    xp: Any, states: Sequence[Any], grads: Sequence[Any], lr: float, place: str, *, weight_decay: float = 0.0, **o: Any
) -> list[Any]:
    pulled = [
        g if g is None or not weight_decay else g + xp.asarray(s.theta) * weight_decay
        for s, g in zip(states, grads, strict=True)
    ]
    return [_otherwise(xp, s, g, lr, place, None, **o) for s, g in zip(states, pulled, strict=True)]


def _step_of_decoupled(
    xp: Any, states: Sequence[Any], grads: Sequence[Any], lr: float, place: str, *, weight_decay: float = 0.01, **o: Any
) -> list[Any]:
    return [_otherwise(xp, s, g, lr, place, weight_decay, **o) for s, g in zip(states, grads, strict=True)]


def _otherwise(
    xp: Any,
    s: Any,
    g: Any,
    lr: float,
    place: str,
    decay: float | None,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> Any:
    """A step with ε elsewhere: "hat", added to √v before the correction, or "inside", under the root."""
    if g is None:
        return s
    theta = xp.asarray(s.theta)
    kept = theta if not decay else theta * (1 - xp.asarray(lr) * decay)
    s = adam_formulas.moments(xp, s, g, betas)
    m_hat, v_hat = s.m / weight_so_far(xp, betas[0], s.t), s.v / weight_so_far(xp, betas[1], s.t)
    if place == "inside":
        denominator = xp.sqrt(v_hat + eps)
    else:
        denominator = xp.sqrt(v_hat) + eps / xp.sqrt(weight_so_far(xp, betas[1], s.t))
    return s._replace(theta=kept - m_hat / denominator * lr)
