"""Facts about numbers, for steps that check what a document prints."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp


def unevaluated(x: Any) -> Any:
    """A number that was worked out elsewhere, kept unevaluated: to SymPy it would be the printed number itself."""
    return sp.Add(x, 0, evaluate=False)


def rounds_to(exact: Any, text: str) -> tuple[Any, Any]:
    """That the exact number, rounded to the digits of `text`, is `text`; a tie would go up."""
    unit = sp.Rational(10) ** -len(text.partition(".")[2])
    return unevaluated(sp.floor(exact / unit + sp.Rational(1, 2)) * unit), sp.Rational(text)


def holds(condition: bool) -> tuple[Any, Any]:
    """That a comparison of numbers came out true: its truth value is 1."""
    return unevaluated(sp.Integer(bool(condition))), sp.S.One
