"""The log-sum-exp trick (equation 12)."""

from __future__ import annotations

import math
from typing import Any

from veriformer.spec.points import equals


def logsumexp(xp: Any, z: Any, axis: int = -1) -> Any:
    """log Σ_i e^{z_i} = c + log Σ_i e^{z_i − c} with c = max z; −∞ over an empty axis, or one that is all −∞."""
    axis %= z.ndim
    shape = z.shape[:axis] + z.shape[axis + 1 :]
    if z.shape[axis] == 0:
        return xp.broadcast_to(xp.asarray(-math.inf), shape)
    c, e, empty = _shifted(xp, z, axis)
    total = xp.where(empty, 1, xp.sum(e, axis=axis, keepdims=True))
    return xp.reshape(xp.where(empty, -math.inf, c + xp.log(total)), shape)


def logsumexp_vjp(xp: Any, z: Any, g: Any, axis: int = -1) -> Any:
    """dz_i = g · e^{z_i} / Σ_j e^{z_j}, with g of the result's shape; zero where every z is −∞."""
    axis %= z.ndim
    if z.shape[axis] == 0:
        return xp.asarray(z)
    _, e, empty = _shifted(xp, z, axis)
    p = e / xp.where(empty, 1, xp.sum(e, axis=axis, keepdims=True))
    return p * xp.reshape(g, (*z.shape[:axis], 1, *z.shape[axis + 1 :]))


def _shifted(xp: Any, z: Any, axis: int) -> tuple[Any, Any, Any]:
    m = xp.max(z, axis=axis, keepdims=True)
    empty = equals(m, -math.inf)
    c = xp.where(empty, 0, m)
    return c, xp.exp(z - c), empty
