"""Layer normalisation (equation 19)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.points import sum_to_shape


def layer_norm(xp: Any, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    """γ ⊙ (x − μ) / √(σ² + ε) + β, with the mean μ and the biased variance σ² of the last axis.

    x [..., d], weight γ and bias β [d] or None. The variance is taken of the centred x, in two passes.
    """
    x_hat, _ = _normalised(xp, x, eps)
    y = x_hat if weight is None else x_hat * weight
    return y if bias is None else y + bias


def layer_norm_vjp(
    xp: Any, x: Any, weight: Any, bias: Any, g: Any, *, eps: float = 1e-5
) -> tuple[Any, Any | None, Any | None]:
    """dx = (h − mean h − x̂ mean(h ⊙ x̂)) / √(σ² + ε) with h = g ⊙ γ; dγ = Σ g ⊙ x̂; dβ = Σ g."""
    x_hat, r = _normalised(xp, x, eps)
    h = g if weight is None else g * weight
    dx = r * (h - _mean(xp, h) - x_hat * _mean(xp, h * x_hat))
    d_weight = None if weight is None else sum_to_shape(xp, g * x_hat, weight.shape)
    return dx, d_weight, None if bias is None else sum_to_shape(xp, g, bias.shape)


def _mean(xp: Any, x: Any) -> Any:
    return xp.sum(x, axis=-1, keepdims=True) / x.shape[-1]


def _normalised(xp: Any, x: Any, eps: float) -> tuple[Any, Any]:
    centred = x - _mean(xp, x)
    r = 1 / xp.sqrt(_mean(xp, centred * centred) + eps)
    return centred * r, r
