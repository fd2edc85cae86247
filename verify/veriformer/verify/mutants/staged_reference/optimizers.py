"""Optimizers in their plainest form, one parameter and one stage at a time, to put a fault into."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Betas = tuple[float, float]
Update = Callable[..., None]


class Stepper:
    """Parameters, a dict of state for each, options, and an update of one parameter by its gradient."""

    def __init__(self, update: Update, params: Sequence[Tensor], **options: Any) -> None:
        self.update = update
        self.params = list(params)
        self.options = options
        self.states: list[dict[str, Any]] = [{} for _ in self.params]

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for p, state in zip(self.params, self.states, strict=True):
            if p.grad is not None:
                self.update(p, p.grad, state, **self.options)

    def zero_grad(self) -> None:
        """Leave no gradient."""
        for p in self.params:
            p.grad = None

    def state_dict(self) -> dict[str, Any]:
        """States and options."""
        return {"states": self.states, "options": self.options}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.states, self.options = copy.deepcopy(saved["states"]), dict(saved["options"])


def stepping(update: Update, made: type[Stepper] = Stepper) -> Callable[..., Stepper]:
    """Return the kernel of an optimizer whose parameters are updated like this."""
    return lambda params, lr, **options: made(update, params, lr=lr, **options)


def wide(x: Tensor) -> Tensor:
    """Halves as fp32."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def descend(p: Tensor, g: Tensor, state: dict[str, Any], *, lr: float) -> None:
    """θ ← θ − η g."""
    p.copy_(wide(p) - lr * wide(g))


def _average(old: Tensor, new: Tensor, beta: float) -> Tensor:
    return beta * old + (1 - beta) * new


def _velocity(v: Tensor, g: Tensor, beta: float) -> Tensor:
    return v


@dataclass(frozen=True)
class Momentum:
    """average: the new velocity from the old one and the gradient. direction: what the step takes of it."""

    average: Callable[[Tensor, Tensor, float], Tensor] = _average
    start: Callable[[Tensor], Tensor] = torch.zeros_like
    direction: Callable[[Tensor, Tensor, float], Tensor] = _velocity

    def __call__(self, p: Tensor, g: Tensor, state: dict[str, Any], *, lr: float, beta: float) -> None:
        """Take one step."""
        old = state.get("v", self.start(wide(g)))
        state["v"] = self.average(old, wide(g), beta)
        p.copy_(wide(p) - lr * self.direction(state["v"], wide(g), beta))


def _added(g: Tensor, theta: Tensor, decay: float) -> Tensor:
    return g + decay * theta


def gradient_alone(g: Tensor, theta: Tensor, decay: float) -> Tensor:
    """No decay in the gradient."""
    return g


def _whole(theta: Tensor, lr: float, decay: float) -> Tensor:
    return theta


def shrunk(theta: Tensor, lr: float, decay: float) -> Tensor:
    """(1 − ηλ) θ."""
    return theta * (1 - lr * decay)


def _corrected(m: Tensor, v: Tensor, betas: Betas, t: int) -> tuple[Tensor, Tensor]:
    return m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)


def _outside(v_hat: Tensor, eps: float, beta_2: float, t: int) -> Tensor:
    return v_hat.sqrt() + eps


@dataclass(frozen=True)
class Adam:
    """Adam's stages: decay in the gradient and in the parameter, averages, their correction, the denominator."""

    pull: Callable[[Tensor, Tensor, float], Tensor] = _added
    shrink: Callable[[Tensor, float, float], Tensor] = _whole
    average: Callable[[Tensor, Tensor, float], Tensor] = _average
    correct: Callable[[Tensor, Tensor, Betas, int], tuple[Tensor, Tensor]] = _corrected
    denominator: Callable[[Tensor, float, float, int], Tensor] = _outside

    def __call__(
        self,
        p: Tensor,
        g: Tensor,
        state: dict[str, Any],
        *,
        lr: float,
        betas: Betas,
        eps: float,
        weight_decay: float,
        correcting: Betas | None = None,
    ) -> None:
        """Take one step; correcting: betas for the correction, where they are others."""
        theta, zero = wide(p), torch.zeros_like(wide(p))
        g = self.pull(wide(g), theta, weight_decay)
        t = state["t"] = state.get("t", 0) + 1
        m = state["m"] = self.average(state.get("m", zero), g, betas[0])
        v = state["v"] = self.average(state.get("v", zero), g * g, betas[1])
        m_hat, v_hat = self.correct(m, v, correcting or betas, t)
        step = m_hat / self.denominator(v_hat, eps, betas[1], t)
        p.copy_(self.shrink(theta, lr, weight_decay) - lr * step)


DECOUPLED: Mapping[str, Any] = {"pull": gradient_alone, "shrink": shrunk}
"""The stages in which AdamW differs from Adam."""
