"""Clipping by the global norm (equation 11)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from veriformer.spec.points import equals


def clip_grad_norm(xp: Any, grads: Sequence[Any], max_norm: float) -> tuple[list[Any], Any]:
    """g̃ = min(1, c / ‖g‖₂) g over all arrays of the list together, and ‖g‖₂; the identity where ‖g‖ ≤ c.

    max_norm c ≥ 0 may be 0 (zeros) or ∞ (the identity); an empty list has norm 0.
    """
    norm = global_norm(xp, grads)
    if math.isinf(max_norm):
        return list(grads), norm
    nothing = equals(norm, 0)
    # min(1, ·) instead of a comparison: at ‖g‖ ≈ c rounding may take either side, and the bound must grant both.
    factor = xp.where(nothing, 1, xp.minimum(1, max_norm / xp.where(nothing, 1, norm)))
    return [g * factor for g in grads], norm


def global_norm(xp: Any, grads: Sequence[Any]) -> Any:
    """‖g‖₂ = s √(Σ (g / s)²) with s = max |g|, so that no square leaves the range of the format."""
    flat = [xp.reshape(g, (-1,)) for g in grads if math.prod(g.shape)]
    if not flat:
        return xp.asarray(0)
    g = xp.concat(flat, axis=0)
    s = xp.max(abs(g), axis=0)
    s = xp.where(equals(s, 0), 1, s)
    return s * xp.sqrt(xp.sum((g / s) * (g / s), axis=0))
