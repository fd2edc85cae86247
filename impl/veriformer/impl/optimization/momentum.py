"""Momentum: steps along an average of the gradients."""

from typing import Any

import torch
from torch import Tensor

from veriformer.impl.optimization.fp32_copies import copy_back, fp32_copies
from veriformer.impl.optimization.optimizer import ParameterwiseOptimizer, Params, decay_rate
from veriformer.impl.precision import accumulation_dtype


class Momentum(ParameterwiseOptimizer):
    """v ← β v + (1 − β) g, θ ← θ − η v. See `sgd_momentum`."""

    def __init__(self, params: Params, lr: float, *, beta: float = 0.9) -> None:
        super().__init__(params, lr=lr, beta=beta)

    def check(self, options: dict[str, Any]) -> dict[str, Any]:
        """Check that β lies in [0, 1)."""
        return {**super().check(options), "beta": decay_rate("beta", options["beta"])}

    def update(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> None:
        """Apply a step of (5) and (6); the velocity of half-precision parameters is kept in float32."""
        velocities = [self._velocity(p) for p in params]
        wide = fp32_copies(params)
        torch._foreach_lerp_(velocities, fp32_copies(grads), 1 - group["beta"])
        torch._foreach_add_(wide, velocities, alpha=-group["lr"])
        copy_back(params, wide)

    def _velocity(self, p: Tensor) -> Tensor:
        state = self.state[p]
        if not state:
            state["v"] = torch.zeros_like(p, dtype=accumulation_dtype(p.dtype))
        v: Tensor = state["v"]
        return v


def sgd_momentum(params: Params, lr: float, *, beta: float = 0.9) -> Momentum:
    r"""Return an optimizer that steps along the exponential average of the gradients.

    $$v \leftarrow \beta v + (1 - \beta)\, g, \quad \theta \leftarrow \theta - \eta\, v, \quad v_0 = 0$$

    The velocity is damped from the first step on, which is then $(1 - \beta)\, \eta\, g$: `torch.optim.SGD` starts with
    $v_1 = g$ instead. `params`: leaf tensors or groups; float64, float32, bfloat16 or float16, of which halves have
    their velocity in float32. A parameter whose `grad` is `None` keeps its velocity. Raises `ValueError` for `lr < 0`,
    `beta` outside [0, 1) and no parameters, `TypeError` for what is no tensor or no number. Equations 5 and 6.
    """
    return Momentum(params, lr, beta=beta)
