"""Gradient descent: a step against the gradient."""

from typing import Any

import torch
from torch import Tensor

from veriformer.impl.optimization.optimizer import ParameterwiseOptimizer, Params


class GradientDescent(ParameterwiseOptimizer):
    """θ ← θ − η g. See `gradient_descent`."""

    def __init__(self, params: Params, lr: float) -> None:
        super().__init__(params, lr=lr)

    def update(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> None:
        """Apply a step of (3)."""
        torch._foreach_add_(params, grads, alpha=-group["lr"])


def gradient_descent(params: Params, lr: float) -> GradientDescent:
    r"""Return an optimizer that takes plain steps against the gradient.

    $$\theta \leftarrow \theta - \eta\, g$$

    `params`: leaf tensors, or dicts of `params` and an `lr` of their own; float64, float32, bfloat16 or float16.
    A parameter whose `grad` is `None` is skipped. Raises `ValueError` for `lr < 0` and for no parameters, `TypeError`
    for what is no tensor or no number. Equation 3.
    """
    return GradientDescent(params, lr)
