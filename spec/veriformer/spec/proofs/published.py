"""Facts about numbers, for steps that check what a document prints."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.provenance import Computed, plain


def rounds_to(exact: Any, text: str) -> tuple[Any, Any]:
    """Return the identity that the exact number, rounded to the digits of `text`, is `text`; a tie goes up.

    A number that is the printed one to begin with was not rounded: nobody computed it, unless it says so.
    """
    unit, printed = sp.Rational(10) ** -len(text.partition(".")[2]), sp.Rational(text)
    value = plain(exact)
    if value == printed:
        return exact, printed
    return Computed(sp.floor(value / unit + sp.Rational(1, 2)) * unit, "rounding"), printed


def holds(condition: bool) -> tuple[Any, Any]:
    """Return the identity that a comparison of numbers came out true: its truth value is 1."""
    return Computed(sp.Integer(bool(condition)), "comparison"), sp.S.One
