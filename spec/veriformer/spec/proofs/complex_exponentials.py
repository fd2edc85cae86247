"""Rotations as proofs see them: sines and cosines as exponentials of imaginary angles."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp


def as_exponentials(e: Any) -> Any:
    """Rewrite sines and cosines by e^{ix}: their addition theorem is then that of the exponential."""
    return sp.sympify(e).rewrite(sp.exp)


def rotated(a: Any, b: Any, angle: Any) -> tuple[Any, Any]:
    """Multiply the column (a, b) by the rotation matrix of this angle as printed."""
    c, s = as_exponentials(sp.cos(angle)), as_exponentials(sp.sin(angle))
    return a * c - b * s, a * s + b * c
