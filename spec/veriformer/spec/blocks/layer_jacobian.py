"""The layer norm of any width and its Jacobian, as the blocks' proofs use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.indexed import delta, dimension, positive, sum_over, vector

Vector = Callable[[Any], Any]


def over(term: Vector) -> Any:
    """Σ over all d features."""
    return sum_over("d", term)


def x_of(i: Any) -> Any:
    """Feature i of the stream."""
    return vector("x")[i]


def rate(x: Vector = x_of, eps: Any = None) -> Any:
    """1 / √(σ² + ε)."""
    d = dimension("d")
    mean = over(x) / d
    return 1 / sp.sqrt(over(lambda i: (x(i) - mean) ** 2) / d + (positive("epsilon") if eps is None else eps))


def x_hat(i: Any, x: Vector = x_of, eps: Any = None) -> Any:
    """Feature i of LayerNorm(x) without weight and bias."""
    return (x(i) - over(x) / dimension("d")) * rate(x, eps)


def jacobian(i: Any, k: Any, x: Vector = x_of, eps: Any = None) -> Any:
    """∂x̂_i / ∂x_k, proved at equation 19."""
    d = dimension("d")
    return rate(x, eps) * (delta(i, k) - 1 / d - x_hat(i, x, eps) * x_hat(k, x, eps) / d)
