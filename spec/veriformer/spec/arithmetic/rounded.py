"""Rounded arithmetic: running error analysis. Its bounds are the tolerances, and there are no others.

Every array carries the oracle's value v and a bound e with |x̂ − v| ≤ e for the result x̂ of any correct implementation:
one that performs the formula's operations in any order of summation, each with unit roundoff u of the format.
After Wilkinson, Rounding Errors in Algebraic Processes (1963), and Higham, Accuracy and Stability of Numerical
Algorithms (2002), sections 3.1 to 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.exact import Exact
from veriformer.spec.arithmetic.float import Float
from veriformer.spec.arithmetic.formats import FORMATS, Format
from veriformer.spec.arithmetic.ulps import DIVISION_ROUNDINGS, EXP_ARGUMENT_ROUNDINGS, ULPS
from veriformer.spec.arithmetic.vocabulary import Arithmetic, Array, Axis, Raw

Reals = NDArray[np.float64]

# The bounds are themselves computed in float64 from sums and products of non-negative numbers, some twenty roundings
# per operation: this factor covers them.
_INFLATION = 1.0 + 2.0**-40


class RoundedArray(Array):
    """A value with `error`, the bound on how far a correct implementation may be from it, in float64."""

    __slots__ = ("error", "size")

    def __init__(self, xp: Rounded, value: Array, error: Reals, size: Reals) -> None:
        super().__init__(xp, value)
        self.error = error
        self.size = size


def _add(r: Rounded, y: Reals, a: RoundedArray, b: RoundedArray) -> Reals:
    return r.u * y + r.carried * (a.error + b.error)


def _multiply(r: Rounded, y: Reals, a: RoundedArray, b: RoundedArray) -> Reals:
    e = r.u * y + r.carried * (a.size * b.error + a.error * (b.size + b.error))
    return e + r.underflow * np.sign(e + y)


def _divide(r: Rounded, y: Reals, a: RoundedArray, b: RoundedArray) -> Reals:
    margin = (b.size - b.error) * (2.0 - _INFLATION)
    d = np.where(margin > 0.0, (a.error + y * b.error) / margin, np.inf)
    e = _INFLATION * d + DIVISION_ROUNDINGS * r.u * (y + d)
    return e + r.underflow * np.sign(e + y)


def _matmul(r: Rounded, y: Reals, a: RoundedArray, b: RoundedArray) -> Reals:
    n = a.shape[-1]
    e = a.size @ (n * r.u * b.size + r.carried_by(n) * b.error) + a.error @ (r.carried_by(n) * (b.size + b.error))
    return e + n * r.underflow * np.sign(e)


def _sum(r: Rounded, y: Reals, x: RoundedArray, axis: Axis, keepdims: bool) -> Reals:
    n = x.error.size // max(y.size, 1)
    terms = (n - 1) * r.u * x.size + r.carried_by(n) * x.error
    return np.asarray(np.sum(terms, axis=axis, keepdims=keepdims))


def _max(r: Rounded, y: Reals, x: RoundedArray, axis: Axis, keepdims: bool) -> Reals:
    return np.asarray(np.max(x.error, axis=axis, keepdims=keepdims, initial=0.0))


def _larger(r: Rounded, y: Reals, a: RoundedArray, b: RoundedArray) -> Reals:
    return np.maximum(a.error, b.error)


def _same(r: Rounded, y: Reals, x: RoundedArray) -> Reals:
    return x.error


def _exp(r: Rounded, y: Reals, x: RoundedArray) -> Reals:
    grown = np.expm1(x.error) * _INFLATION
    argument = np.where(np.isfinite(x.size), x.size + x.error, 0.0)
    relative = np.expm1(r.u * (2.0 * ULPS["exp"] + EXP_ARGUMENT_ROUNDINGS * argument)) * _INFLATION
    e = y * (grown + (1.0 + grown) * relative)
    return e + 2.0 * ULPS["exp"] * r.underflow * np.sign(np.where(np.isinf(x.size), e, 1.0))


def _log(r: Rounded, y: Reals, x: RoundedArray) -> Reals:
    margin = (x.size - x.error) * (2.0 - _INFLATION)
    d = np.where(margin > 0.0, x.error / margin, np.where(x.error > 0.0, np.inf, 0.0))
    return _INFLATION * d + 2.0 * ULPS["log"] * r.u * (y + d)


def _sqrt(r: Rounded, y: Reals, x: RoundedArray) -> Reals:
    below = np.sqrt(np.maximum(x.size - x.error, 0.0))
    d = np.where(x.error > 0.0, np.minimum(x.error / (y + below), np.sqrt(x.error)), 0.0) * _INFLATION
    return d + 2.0 * ULPS["sqrt"] * r.u * (y + d)


def _bounded(name: str, slope: float) -> Callable[..., Reals]:
    """A function within [−1, 1] whose derivative never exceeds `slope`."""

    def rule(r: Rounded, y: Reals, x: RoundedArray) -> Reals:
        d = np.minimum(slope * _INFLATION * x.error, 2.0)
        e = d + 2.0 * ULPS[name] * r.u * (y + d)
        return e + 2.0 * ULPS[name] * r.underflow * np.sign(e)

    return rule


_RULES: dict[str, Callable[..., Reals]] = {
    "add": _add,
    "subtract": _add,
    "multiply": _multiply,
    "divide": _divide,
    "matmul": _matmul,
    "sum": _sum,
    "max": _max,
    "maximum": _larger,
    "minimum": _larger,
    "negative": _same,
    "absolute": _same,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "tanh": _bounded("tanh", 1.0),
    "erf": _bounded("erf", 2.0 / np.sqrt(np.pi)),
    "sin": _bounded("sin", 1.0),
    "cos": _bounded("cos", 1.0),
}


class Rounded(Arithmetic):
    """Evaluate a formula in the oracle and bound what a correct implementation in `format` may differ from it.

    The oracle defaults to float64 for formats below fp64, and to `Exact()` for fp64; its own rounding is part of every
    bound. A half has the working range of fp32, since no finite result may overflow through a half-precision
    intermediate, but its own roundoff, and its own underflow, since the accumulation dtype is the implementation's.
    """

    def __init__(self, format: Format, *, oracle: Float | Exact | None = None) -> None:
        self.format = format
        self.oracle = oracle or (Exact() if format.precision >= 53 else Float())
        own = 0.0 if isinstance(self.oracle, Exact) else 4.0 * 2.0**-53
        self.u = (format.unit_roundoff + own) * _INFLATION
        self.carried = (1.0 + self.u) * _INFLATION
        # Half of the smallest subnormal of fp64 is no float64: there the whole one.
        self.underflow = max(format.smallest_subnormal / 2.0 * _INFLATION, 2.0**-1074)
        self.largest = max(format.max, FORMATS["fp32"].max)
        self._constant = lru_cache(maxsize=1024)(self._make_constant)

    def __repr__(self) -> str:
        return f"Rounded({self.format.name}, oracle={self.oracle!r})"

    def carried_by(self, n: int) -> float:
        """What n roundings make of an error that the operands bring."""
        return (1.0 + n * self.u) * _INFLATION

    def asarray(self, x: Any) -> RoundedArray:
        """Take numbers: exact where the format holds them, rounded once where it does not."""
        if isinstance(x, RoundedArray):
            if x.xp is not self:
                raise TypeError(f"expected an array of {self!r}, got one of {x.xp!r}")
            return x
        if type(x) in (int, float, Fraction):
            return self._constant(type(x), x)
        return self._make(x)

    def _make_constant(self, kind: type, x: Any) -> RoundedArray:
        return self._make(x)

    def _make(self, x: Any) -> RoundedArray:
        value = self.oracle.asarray(x)
        size = self._size(value)
        with np.errstate(all="ignore"):
            held = self.format.round(size) == size
            if isinstance(x, Fraction):
                held = np.asarray(x.denominator & (x.denominator - 1) == 0 and bool(held))
            error = np.where(held, 0.0, self.u * size + self.underflow)
        return RoundedArray(self, value, np.where(np.isnan(error), np.inf, error), size)

    def _size(self, value: Array) -> Reals:
        return np.abs(self.oracle.tofloat(value))

    def rearrange(self, move: Callable[..., Raw], /, *arrays: Any) -> RoundedArray:
        """Apply `move`, which only copies and places entries, to values and errors alike."""
        xs = [self.asarray(x) for x in arrays]
        value = self.oracle.rearrange(move, *[x.value for x in xs])
        error, size = (np.asarray(move(*parts)) for parts in ([x.error for x in xs], [x.size for x in xs]))
        return RoundedArray(self, value, error, size)

    def apply(self, operation: str, /, *operands: Any, **options: Any) -> RoundedArray:
        """Carry out a computing operation of the vocabulary, given by name, on values and errors."""
        xs = [x if isinstance(x, RoundedArray) and x.xp is self else self.asarray(x) for x in operands]
        value = self.oracle.apply(operation, *[x.value for x in xs], **options)
        size = self._size(value)
        with np.errstate(all="ignore"):
            error = _RULES[operation](self, size, *xs, **options)
            if not np.max(size + error, initial=0.0) <= self.largest:
                error = self._beyond(size, error, xs, options)
        return RoundedArray(self, value, error, size)

    def _beyond(self, size: Reals, error: Reals, xs: list[RoundedArray], options: dict[str, Any]) -> Reals:
        """Without bound where an intermediate may overflow or is undefined; none where infinity is exact."""
        infinite, lost = False, False
        for x in xs:
            i, o = np.isinf(x.size) & (x.error == 0.0), np.isinf(x.error)
            if options:
                i, o = np.any(i, **options), np.any(o, **options)
            elif i.shape and not np.broadcast_shapes(i.shape, size.shape) == size.shape:
                i, o = np.asarray(False), np.asarray(True)
            infinite, lost = infinite | i, lost | o
        exact = np.isinf(size) & ((error == 0.0) | (infinite & ~np.asarray(lost)))
        return np.where(exact, 0.0, np.where(size + error <= self.largest, error, np.inf))

    def judgeable(self, x: Any) -> tuple[Reals, Reals]:
        """The values in float64, and the bound on a result that is rounded to the format at the end.

        The bound is inf where the true result may overflow the format, and contains the conversion of the oracle's
        value to float64.
        """
        x = self.asarray(x)
        v, f = self.oracle.tofloat(x.value), self.format
        with np.errstate(all="ignore"):
            bound = (x.error + (f.unit_roundoff + 2.0**-52) * (x.size + x.error)) * _INFLATION
            bound = bound + self.underflow * np.sign(bound)
            bound = np.where(x.size + bound <= f.max, bound, np.inf)
        return v, np.where(np.isinf(v) & (x.error == 0.0), 0.0, bound)
