"""AdamW: Adam with decoupled weight decay (documents 000 and 001, section 9.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from veriformer.spec.optimization.adam import Moments, adam_step, moments
from veriformer.spec.optimization.updates import each


def adamw(
    xp: Any,
    states: Sequence[Moments],
    grads: Sequence[Any],
    *,
    lr: Any,
    betas: tuple[Any, Any] = (0.9, 0.999),
    eps: Any = 1e-8,
    weight_decay: Any = 0.01,
) -> list[Moments]:
    """θ ← (1 − η λ) θ − η m̂ / (√v̂ + ε) for each parameter: the decay λ passes by the averages.

    States are Adam's, and start with `adam_start`. A gradient of None leaves its parameter's state alone: it does not
    decay either.
    """

    def update(s: Moments, g: Any) -> Moments:
        theta = xp.asarray(s.theta)
        kept = theta if weight_decay == 0 else theta * (1 - xp.asarray(lr) * weight_decay)
        s = moments(xp, s, g, betas)
        return s._replace(theta=kept - adam_step(xp, s, lr=lr, betas=betas, eps=eps))

    return each(xp, update, states, grads)
