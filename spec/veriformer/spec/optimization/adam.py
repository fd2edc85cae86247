"""Adam: averages of gradients and of their squares (equations 7, 8 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.optimization.averages import average, weight_so_far
from veriformer.spec.optimization.updates import each, zeros
from veriformer.spec.proofs.indexed import real


class Moments(NamedTuple):
    """A parameter θ, the averages m of its gradients and v of their squares, of one shape, and its count of steps."""

    theta: Any
    m: Any
    v: Any
    t: int


def adam_start(xp: Any, params: Sequence[Any]) -> list[Moments]:
    """Parameters before their first step: m_0 = v_0 = 0. AdamW starts here too."""
    return [Moments(theta, zeros(xp, theta), zeros(xp, theta), 0) for theta in params]


def adam(
    xp: Any,
    states: Sequence[Moments],
    grads: Sequence[Any],
    *,
    lr: Any,
    betas: tuple[Any, Any] = (0.9, 0.999),
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
) -> list[Moments]:
    """θ ← θ − η m̂ / (√v̂ + ε) for each parameter (equations 7 to 9), with the gradient g + λ θ where λ ≠ 0 (L2).

    A gradient of None leaves its parameter's state alone, its step count too. ε may be 0 where no gradient is.
    1 − β and 1 − β^t are operations of the formula like any other: an implementation may round β to its own format.
    """

    def update(s: Moments, g: Any) -> Moments:
        theta = xp.asarray(s.theta)
        s = moments(xp, s, g if weight_decay == 0 else g + theta * weight_decay, betas)
        return s._replace(theta=theta - adam_step(xp, s, lr=lr, betas=betas, eps=eps))

    return each(xp, update, states, grads)


def moments(xp: Any, s: Moments, g: Any, betas: tuple[Any, Any]) -> Moments:
    """The state with m and v averaged over one gradient more (equations 7 and 8)."""
    m, v = (average(xp, xp.asarray(x), y, b) for x, y, b in zip((s.m, s.v), (g, g * g), betas, strict=True))
    return Moments(s.theta, m, v, s.t + 1)


def adam_step(xp: Any, s: Moments, *, lr: Any, betas: tuple[Any, Any], eps: Any) -> Any:
    """η m̂ / (√v̂ + ε), with m̂ = m / (1 − β₁^t) and v̂ = v / (1 − β₂^t): what (9) subtracts."""
    m_hat, v_hat = (x / weight_so_far(xp, beta, s.t) for x, beta in zip((s.m, s.v), betas, strict=True))
    return m_hat / (xp.sqrt(v_hat) + eps) * lr


def run_adam(gradients: Sequence[Any], step: Any = adam, **options: Any) -> list[Moments]:
    """The states after each step, as expressions, of one number θ that starts at the symbol θ."""
    xp = Symbolic()
    states = adam_start(xp, [xp.asarray(real("theta"))])
    for g in gradients:
        states += step(xp, states[-1:], [g], **options)
    return [Moments(s.theta.value[()], s.m.value[()], s.v.value[()], s.t) for s in states[1:]]
