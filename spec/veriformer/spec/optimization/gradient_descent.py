"""Gradient descent: a step against the gradient (equation 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from veriformer.spec.optimization.updates import each


def gradient_descent(xp: Any, params: Sequence[Any], grads: Sequence[Any], *, lr: Any) -> list[Any]:
    """θ ← θ − η g for each parameter: a step of Euler's method for (3). A gradient of None leaves it alone."""
    return each(xp, lambda theta, g: xp.asarray(theta) - g * lr, params, grads)
