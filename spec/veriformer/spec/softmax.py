"""Softmax (equations 1, 21 and 25)."""

from __future__ import annotations

from typing import Any


def softmax(xp: Any, z: Any, axis: int = -1) -> Any:
    """p_i = e^{z_i} / Σ_j e^{z_j}, computed as e^{z_i − m} / Σ_j e^{z_j − m} with m = max z.

    z has any shape, its `axis` is not empty; entries may be −∞ as long as one along the axis is finite.
    """
    e = xp.exp(z - xp.max(z, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


def softmax_vjp(xp: Any, z: Any, g: Any, axis: int = -1) -> Any:
    """dz = p ⊙ (g − Σ_j p_j g_j): the cotangent g of softmax(z), pulled back through the Jacobian (25)."""
    p = softmax(xp, z, axis)
    return p * (g - xp.sum(p * g, axis=axis, keepdims=True))
