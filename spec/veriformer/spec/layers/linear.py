"""A linear layer with a bias, and its gradients: what every equation of this package is made of."""

from __future__ import annotations

from math import prod
from typing import Any


def linear(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """x W + b, for x [..., d_in], W [d_in, d_out] and b [d_out]."""
    return xp.matmul(x, w) + b


def linear_vjp(xp: Any, x: Any, w: Any, g: Any) -> tuple[Any, Any, Any]:
    """dx = g Wᵀ; dW = Xᵀ G and db = Σ g over all rows of x and g."""
    rows = as_rows(xp, g)
    dw = xp.matmul(xp.swapaxes(as_rows(xp, x), 0, 1), rows)
    return xp.matmul(g, xp.swapaxes(w, 0, 1)), dw, xp.sum(rows, axis=0)


def as_rows(xp: Any, x: Any) -> Any:
    """Reshape vectors [..., d] to the rows of a matrix [N, d]."""
    return xp.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
