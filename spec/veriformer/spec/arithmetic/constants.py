"""The circle constant in every arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp

# 120 decimals: more than any precision that the oracle is run with.
_PI = Fraction(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
    "3282306647"
)


def pi(xp: Any) -> Any:
    """Return π: symbolically on symbols, else to 398 bits."""
    return xp.asarray(sp.pi if xp.of_symbols else _PI)
