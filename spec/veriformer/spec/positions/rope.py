"""RoPE: queries and keys are turned by angles that grow with their position (equations 30 and 31)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.positions.angles import Scaling, cosines_and_sines


def rope(
    xp: Any,
    x: Any,
    positions: Any,
    *,
    base: Any = 10000.0,
    pairing: str = "interleaved",
    scaling: Scaling = None,
) -> Any:
    """Turn pair i of the features by the angle m θ_i: (a, b) becomes (a cos − b sin, a sin + b cos) (30, 31).

    x [..., n, d_k] with even d_k; positions m [n], or all axes of x but the last, each full or 1. θ_i is
    base^(−2i/d_k), scaled as `frequencies` says. Pair i is (x_2i, x_2i+1) if "interleaved", (x_i, x_i+d_k/2) if "half".
    """
    a, b = _pairs(x, pairing)
    cos, sin = cosines_and_sines(xp, positions, x.shape[-1], base=base, scaling=scaling)
    return _features(xp, a * cos - b * sin, a * sin + b * cos, pairing)


def rope_vjp(
    xp: Any,
    x: Any,
    positions: Any,
    g: Any,
    *,
    base: Any = 10000.0,
    pairing: str = "interleaved",
    scaling: Scaling = None,
) -> Any:
    """dx: the cotangent turned back, by −m θ_i, since the inverse of a rotation is its transpose."""
    a, b = _pairs(g, pairing)
    cos, sin = cosines_and_sines(xp, positions, x.shape[-1], base=base, scaling=scaling)
    return _features(xp, a * cos + b * sin, b * cos - a * sin, pairing)


def _pairs(x: Any, pairing: str) -> tuple[Any, Any]:
    half = x.shape[-1] // 2
    if pairing == "half":
        return x[..., :half], x[..., half:]
    if pairing == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    raise ValueError(f"pairing: expected 'interleaved' or 'half', got {pairing!r}")


def _features(xp: Any, a: Any, b: Any, pairing: str) -> Any:
    if pairing == "half":
        return xp.concat([a, b], axis=-1)
    return xp.reshape(xp.stack([a, b], axis=-1), (*a.shape[:-1], 2 * a.shape[-1]))
