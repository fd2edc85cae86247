"""Rotations as proofs see them: sines and cosines as exponentials of imaginary angles."""

from __future__ import annotations

from typing import Any

from veriformer.spec.lazy import sp


def turning(e: Any) -> Any:
    """The expression with e^{ix} for its sines and cosines: their addition theorem is then that of the exponential."""
    return sp.sympify(e).rewrite(sp.exp)


def turned(a: Any, b: Any, angle: Any) -> tuple[Any, Any]:
    """The pair (a, b), a column, times the rotation matrix of this angle as printed."""
    c, s = turning(sp.cos(angle)), turning(sp.sin(angle))
    return a * c - b * s, a * s + b * c
