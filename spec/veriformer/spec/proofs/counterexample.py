"""Points at which two expressions differ: sums are written out, and numbers are put for all letters."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import mpmath

from veriformer.spec.arithmetic.indicators import AtLeastZero, Block, Place, Some, Within
from veriformer.spec.arithmetic.lazy_sympy import sp

_DIGITS = 35
_FEW = 4


def numeric_counterexample(left: Any, right: Any) -> str | None:
    """Return a point at which the two sides differ, in words; None if the points tried show none.

    Dimensions (positive integers) become 3, 4, 5 …, or 2 and 3 in turn where there are more than four, and indices
    (integers) numbers from 1 to 3, or 2; entries that are integers, such as tokens, become 0 or 1, and everything else
    a rational number. A difference counts from 20 digits on. A proof never rests on this: it only refutes.
    """
    left, right = sp.sympify(left), sp.sympify(right)
    for seed in range(2):
        point = _Point(left, right, seed)
        with mpmath.workdps(_DIGITS):
            try:
                a, b = point.number(left), point.number(right)
            except ZeroDivisionError:  # a side says nothing here
                continue
            except _NoNumberError:
                return None
            if mpmath.isnan(a) or mpmath.isnan(b):
                continue
            if abs(a - b) > mpmath.mpf("1e-20") * (1 + abs(a) + abs(b)):
                return f"{float(mpmath.re(a)):.6g} against {float(mpmath.re(b)):.6g}{point}"
    return None


class _NoNumberError(ValueError):
    """An expression that has no value, whatever its letters are."""


class _Point:
    """Numbers for the letters of two expressions, drawn when they are first asked for."""

    def __init__(self, left: Any, right: Any, seed: int) -> None:
        self._seed = seed
        self._drawn: dict[str, Any] = {}
        labels = {a.base.label for side in (left, right) for a in side.atoms(sp.Indexed)}
        free = (left.free_symbols | right.free_symbols) - labels
        self._known: dict[Any, Any] = _integers({s for s in free if s.is_Symbol and s.is_integer}, seed)
        self._small = dict(self._known)
        self._bound = 0

    def __str__(self) -> str:
        values = {**{str(s): v for s, v in self._small.items()}, **self._drawn}
        shown = [f"{a} = {v}" for a, v in list(values.items())[:6]]
        return f" at {', '.join(shown)}{', …' if len(values) > 6 else ''}" if shown else ""

    def number(self, e: Any) -> Any:
        """Return the value of an expression; a part that depends on no index of a sum is calculated once."""
        if e in self._known:
            return self._known[e]
        value = self._calculated(e)
        if not self._bound:
            self._known[e] = value
        return value

    def _calculated(self, e: Any) -> Any:
        if e.is_Rational:
            return mpmath.mpf(e.p) / e.q
        if isinstance(e, sp.Sum):
            return self._sum(e.function, e.limits)
        if e.is_Symbol:
            return self._letter(str(e), e)
        if isinstance(e, sp.Indexed):
            return self._letter(f"{e.base.label}[{', '.join(str(self._index(i)) for i in e.indices)}]", e)
        if isinstance(e, _COUNTING):
            return mpmath.mpf(int(e.func(*(sp.Integer(self._index(a)) for a in e.args))))
        if rule := _RULES.get(e.func.__name__):
            return rule(*map(self.number, e.args))
        return self._by_sympy(e)

    def _sum(self, term: Any, limits: Sequence[Any]) -> Any:
        if not limits:
            return self.number(term)
        *inner, (i, first, last) = limits
        self._bound += 1
        total = mpmath.mpf(0)
        for k in range(self._index(first), self._index(last) + 1):
            self._known[i] = mpmath.mpf(k)
            total += self._sum(term, inner)
        self._known.pop(i, None)
        self._bound -= 1
        return total

    def _index(self, e: Any) -> int:
        value = self.number(e)
        if mpmath.im(value) or not mpmath.isint(mpmath.re(value)):
            raise _NoNumberError(f"{e}: expected a whole number, got {value}")
        return int(mpmath.re(value))

    def _letter(self, name: str, like: Any) -> Any:
        if name not in self._drawn:
            self._drawn[name] = sp.Integer(self._seed) if like.is_integer else _value(name, like, self._seed)
        q = self._drawn[name]
        return mpmath.mpf(q.p) / q.q

    def _by_sympy(self, e: Any) -> Any:
        letters = {a: _exactly(self.number(a)) for a in e.atoms(sp.Indexed) | e.free_symbols if a.is_Symbol or a.args}
        value = e.xreplace(letters).evalf(_DIGITS)
        if not value.is_number:
            raise _NoNumberError(str(e))
        return value._to_mpmath(mpmath.mp.prec) if value.is_finite is not False else mpmath.nan


def _integers(symbols: set[Any], seed: int) -> dict[Any, Any]:
    integers = sorted(symbols, key=sp.default_sort_key)
    dimensions = [s for s in integers if s.is_positive]
    indices = [s for s in integers if not s.is_positive]
    few = len(dimensions) <= _FEW
    small = {n: mpmath.mpf(3 + k if few else 2 + k % 2) for k, n in enumerate(dimensions)}
    return small | {i: mpmath.mpf(1 + (k if seed == 0 else 0) % (3 if few else 2)) for k, i in enumerate(indices)}


def _value(name: str, like: Any, seed: int) -> Any:
    q = sp.Rational(random.Random(zlib.crc32(f"{name}{seed}".encode())).randint(3, 29), 8)
    return q if like.is_nonnegative or seed == 0 else -q


def _exactly(x: Any) -> Any:
    return sp.nsimplify(x, rational=True) if not mpmath.im(x) else sp.sympify(x)


def _total(*terms: Any) -> Any:
    return mpmath.fsum(terms)


_COUNTING = (AtLeastZero, Block, Place, Some, Within)
_RULES: dict[str, Callable[..., Any]] = {
    "Add": _total,
    "Mul": lambda *factors: mpmath.fprod(factors),
    "Pow": mpmath.power,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tanh": mpmath.tanh,
    "erf": mpmath.erf,
    "Abs": abs,
    "Max": lambda *x: max(x, key=mpmath.re),
    "Min": lambda *x: min(x, key=mpmath.re),
    "KroneckerDelta": lambda a, b: mpmath.mpf(a == b),
    "Pi": lambda: +mpmath.pi,
    "Exp1": lambda: +mpmath.e,
    "ImaginaryUnit": lambda: mpmath.mpc(0, 1),
}
