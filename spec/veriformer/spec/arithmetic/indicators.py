"""Numbers that say whether something holds, 1 or 0, and indices into axes that are cut up or put together.

SymPy is imported with this module: take it where it is needed.
"""

from __future__ import annotations

from typing import Any

import sympy as sp


class _Indicator(sp.Function):  # type: ignore[misc]
    """1 where a condition on its argument holds, else 0."""

    nargs = 1
    is_integer = True
    is_nonnegative = True
    condition = ""

    def _latex(self, printer: Any, exp: Any = None) -> str:
        """Return Iverson's bracket."""
        bracket = rf"\left[{printer._print(self.args[0])} {self.condition}\right]"
        return bracket + (f"^{{{exp}}}" if exp else "")


class AtLeastZero(_Indicator):
    """1 where an integer is at least 0, else 0."""

    condition = r"\ge 0"

    @classmethod
    def eval(cls, x: Any) -> Any:
        """Decide where the sign is known."""
        if x.is_nonnegative:
            return sp.S.One
        return sp.S.Zero if x.is_negative else None


class Some(_Indicator):
    """1 where a sum of indicators is not 0, else 0: whether one of them is 1."""

    condition = "> 0"

    @classmethod
    def eval(cls, total: Any) -> Any:
        """Decide where the sum is known."""
        if total.is_positive:
            return sp.S.One
        return sp.S.Zero if total.is_zero else None

    def follows_from(self, fact: Any) -> bool:
        """Return whether the fact that this indicator is 1 is among those that the sum is over."""
        (total,) = self.args
        if not isinstance(total, sp.Sum) or len(total.limits) != 1:
            return False
        bound = total.limits[0][0]
        return any(total.function.xreplace({bound: i}) == fact for i in fact.atoms(sp.Symbol))


class Shown(sp.Indexed):  # type: ignore[misc]
    """An entry of a mask of which nothing is known: 1 or 0."""


class Place(sp.Function):  # type: ignore[misc]
    """(h − 1) d + e: where entry e ≤ d of block h stands when blocks of d entries follow one another."""

    nargs = 3
    is_integer = True
    is_positive = True

    @classmethod
    def eval(cls, h: Any, e: Any, d: Any) -> Any:
        """Calculate with numbers; letters stay, since block and entry could not be told from their sum."""
        return (h - 1) * d + e if all(x.is_Integer for x in (h, e, d)) else None

    def _latex(self, printer: Any, exp: Any = None) -> str:
        return rf"({', '.join(printer._print(x) for x in self.args[:2])})"


class Block(sp.Function):  # type: ignore[misc]
    """⌈c / d⌉: the block in which index c stands, in blocks of d entries."""

    nargs = 2
    is_integer = True
    is_positive = True

    @classmethod
    def eval(cls, c: Any, d: Any) -> Any:
        """Take a place apart, also one of blocks of several such blocks, and calculate with numbers."""
        if isinstance(c, Place) and (several := _multiple(c.args[2], d)):
            return c.args[0] if several == 1 else Place(c.args[0], Block(c.args[1], d), several)
        return (c - 1) // d + 1 if c.is_Integer and d.is_Integer else None


class Within(sp.Function):  # type: ignore[misc]
    """c − (⌈c / d⌉ − 1) d: which entry of its block index c is."""

    nargs = 2
    is_integer = True
    is_positive = True

    @classmethod
    def eval(cls, c: Any, d: Any) -> Any:
        """Take a place apart, also one of blocks of several such blocks, and calculate with numbers."""
        if isinstance(c, Place) and (several := _multiple(c.args[2], d)):
            return c.args[1] if several == 1 else Within(c.args[1], d)
        return (c - 1) % d + 1 if c.is_Integer and d.is_Integer else None


def _multiple(width: Any, d: Any) -> Any:
    """Return the number of blocks of d entries in this width, if it is a whole number for all sizes; else None."""
    several = sp.sympify(width) / d
    return several if several.is_integer else None


_INDICATORS = (AtLeastZero, Some, Shown, sp.KroneckerDelta)


def as_number(index: Any) -> Any:
    """Return an index as an arithmetic expression: places are expanded."""
    return sp.sympify(index).replace(Place, lambda h, e, d: (h - 1) * d + e)


def given(fact: Any, e: Any) -> Any:
    """Return e where the indicator `fact`, or a product of indicators, is 1."""
    e = sp.sympify(e)
    for factor in sp.Mul.make_args(fact):
        if isinstance(1 - factor, _INDICATORS):
            e = e.xreplace({1 - factor: sp.S.Zero})
        elif isinstance(factor, _INDICATORS):
            follow = {s: sp.S.One for s in e.atoms(Some) if s.follows_from(factor)}
            e = e.xreplace({factor: sp.S.One, **follow})
    return e


def chosen(fact: Any, a: Any, b: Any) -> Any:
    """Return a where the indicator is 1, and b where it is 0; the other value counts for nothing."""
    if fact == 1 or fact == 0:
        return sp.sympify(a if fact == 1 else b)
    return fact * given(fact, a) + (1 - fact) * given(1 - fact, b)


def product(a: Any, b: Any) -> Any:
    """Return a b: where an indicator that is a factor of one is 0, so is the product; the other may take it for 1."""
    facts = [sp.Mul(*(f for f in sp.Mul.make_args(x) if isinstance(f, _INDICATORS))) for x in map(sp.sympify, (a, b))]
    return given(facts[1], a) * given(facts[0], b)


def summed(term: Any, i: Any, n: Any) -> Any:
    """Return Σ_{i=1}^n term.

    Block by block where the term depends on the block of i, and in parts where it depends on whether i is beyond a
    joint. Indices are named by their depth, so that equal sums are equal expressions.
    """
    if not term.has(i):
        return n * term
    widths = {f.args[1] for f in term.atoms(Block, Within) if f.args[0] == i}
    if widths:
        width = min(widths, key=sp.default_sort_key)
        h, e = (sp.Dummy(letter, integer=True, positive=True) for letter in "he")
        return summed(summed(term.subs(i, Place(h, e, width)), e, width), h, n / width)
    joints = {f.args[0] + i for f in term.atoms(AtLeastZero)} - {n}
    joints = {m for m in joints if not m.has(i) and (n - m).is_positive and m.is_positive}
    if joints:
        joint = min(joints, key=sp.default_sort_key)
        before = term.xreplace({AtLeastZero(joint - i): sp.S.One})
        return summed(before, i, joint) + summed(term.subs(i, joint + i), i, n - joint)
    inner = [int(s.name[1:]) for s in term.atoms(sp.Symbol) if s.name[:1] == "j" and s.name[1:].isdigit()]
    name = sp.Symbol(f"j{1 + max(inner, default=0)}", integer=True, positive=True)
    return sp.Sum(term.xreplace({i: name}), (name, 1, n))
