"""The residual connection: what a branch computes, added to its input (equation 4)."""

from __future__ import annotations

from typing import Any


def residual(xp: Any, x: Any, fx: Any, *, scale: Any = 1.0) -> Any:
    """x + scale · F(x), given F(x) as `fx` of the same shape: an Euler step of (4) of length `scale`."""
    return xp.asarray(x) + (fx if scale == 1 else fx * scale)


def residual_vjp(xp: Any, x: Any, fx: Any, g: Any, *, scale: Any = 1.0) -> tuple[Any, Any]:
    """dx = g, untouched, and d(fx) = scale · g."""
    return g, g if scale == 1 else g * scale
