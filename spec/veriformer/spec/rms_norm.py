"""Root-mean-square normalisation (document 002, section 3.4)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.points import sum_to_shape


def rms_norm(xp: Any, x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
    """γ ⊙ x / √(mean(x²) + ε) over the last axis; x [..., d], weight γ [d] or None."""
    x_hat, _ = _normalised(xp, x, eps)
    return x_hat if weight is None else x_hat * weight


def rms_norm_vjp(xp: Any, x: Any, weight: Any, g: Any, *, eps: float = 1e-6) -> tuple[Any, Any | None]:
    """dx = (h − x̂ mean(h ⊙ x̂)) / √(mean(x²) + ε) with h = g ⊙ γ; dγ = Σ g ⊙ x̂."""
    x_hat, r = _normalised(xp, x, eps)
    h = g if weight is None else g * weight
    dx = r * (h - x_hat * _mean(xp, h * x_hat))
    return dx, None if weight is None else sum_to_shape(xp, g * x_hat, weight.shape)


def _mean(xp: Any, x: Any) -> Any:
    return xp.sum(x, axis=-1, keepdims=True) / x.shape[-1]


def _normalised(xp: Any, x: Any, eps: float) -> tuple[Any, Any]:
    r = 1 / xp.sqrt(_mean(xp, x * x) + eps)
    return x * r, r
