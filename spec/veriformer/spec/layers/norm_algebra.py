"""The norms of any width as proofs use them: means over the features, LayerNorm's features and their Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.indexed import delta, dimension, positive, sum_over, vector

Vector = Callable[[Any], Any]


def over_features(term: Vector) -> Any:
    """Σ over all d features."""
    return sum_over("d", term)


def average(term: Vector) -> Any:
    """The mean over all d features."""
    return over_features(term) / dimension("d")


def x_of(i: Any) -> Any:
    """Feature i of the stream."""
    return vector("x")[i]


def mean_square(x: Vector = x_of) -> Any:
    """The mean of the squares."""
    return average(lambda i: x(i) ** 2)


def variance(x: Vector = x_of) -> Any:
    """σ², the mean square of what is centred."""
    mean = average(x)
    return mean_square(lambda i: x(i) - mean)


def inverse_root(spread: Any, eps: Any = None) -> Any:
    """1 / √(spread + ε)."""
    return 1 / sp.sqrt(spread + (positive("epsilon") if eps is None else eps))


def rate(x: Vector = x_of, eps: Any = None) -> Any:
    """1 / √(σ² + ε)."""
    return inverse_root(variance(x), eps)


def x_hat(i: Any, x: Vector = x_of, eps: Any = None) -> Any:
    """Feature i of LayerNorm(x) without weight and bias."""
    return (x(i) - average(x)) * rate(x, eps)


def pulled_back(k: Any, h: Vector) -> Any:
    """(h_k − mean h − x̂_k mean(h ⊙ x̂)) / √(σ² + ε): what a cotangent h of x̂ is at x_k, proved at equation 19."""
    return rate() * (h(k) - average(h) - x_hat(k) * average(lambda j: h(j) * x_hat(j)))


def jacobian(i: Any, k: Any, x: Vector = x_of, eps: Any = None) -> Any:
    """∂x̂_i / ∂x_k, proved at equation 19."""
    d = dimension("d")
    return rate(x, eps) * (delta(i, k) - 1 / d - x_hat(i, x, eps) * x_hat(k, x, eps) / d)
