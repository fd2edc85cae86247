"""Rules of running error analysis: the error that each operation carries over from its operands, and adds.

Notation: v is the oracle's value and e its bound, |x̂ − v| ≤ e for the x̂ of any correct implementation; y is the
magnitude |v| of the result. An operation f gives x̂ = f(â, b̂)(1 + δ) + ε with |δ| ≤ u and |ε| ≤ η/2, so that with
D ≥ |f(â, b̂) − f(a, b)| the result has e = D + u (y + D) + η/2. Each rule is a D, and what replaces u and η/2.

Sources: Wilkinson, Rounding Errors in Algebraic Processes (1963); Higham, Accuracy and Stability of Numerical
Algorithms (2002), sections 3.1 to 3.3; Jeannerod and Rump, Improved Error Bounds for Inner Products in Floating-Point
Arithmetic (SIAM J. Matrix Anal. Appl. 34, 2013): (n − 1) u Σ|x| bounds a sum of n terms, and n u Σ|a||b| an inner
product, in any order and for every n; the classical γ_n = n u / (1 − n u) is larger and asks for n u < 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.vocabulary import Axis

Reals = NDArray[np.float64]

# The bounds are themselves computed in float64, from sums of at most a million non-negative numbers.
INFLATION = 1.0 + 2.0**-30
_DEFLATION = 1.0 - 2.0**-30

_largest: Any = np.maximum.reduce
_sum_of: Any = np.add.reduce


class Bounded(Protocol):
    """An operand: |v|, and e."""

    @property
    def magnitude(self) -> Reals: ...  # noqa: D102
    @property
    def error(self) -> Reals: ...  # noqa: D102


@dataclass(frozen=True)
class RoundingModel:
    """Rounding errors that an implementation may make: relatively u, absolutely by underflow, without bound beyond
    `largest`.

    `vanished` is how many times as much a power of e may lose by underflow, since its exponent may have been lowered
    and its result raised again. `flush` is what adding loses where subnormal results become zero, else 0. `ulps` holds
    the relative errors of the functions, and `erf_absolute` the absolute error of one.
    """

    u: float
    underflow: float
    vanished: float
    flush: float
    largest: float
    erf_absolute: float
    ulps: Mapping[str, float]


def _add(c: RoundingModel, y: Reals, a: Bounded, b: Bounded) -> Reals:
    e = c.u * y + _grown(c, 1) * (a.error + b.error)
    return e + c.flush if c.flush else e


def _multiply(c: RoundingModel, y: Reals, a: Bounded, b: Bounded) -> Reals:
    d = a.magnitude * b.error + a.error * (b.magnitude + b.error)
    return _underflowing(c, c.u * y + _grown(c, 1) * d, 1.0, _may_be_some(a) & _may_be_some(b))


def _divide(c: RoundingModel, y: Reals, a: Bounded, b: Bounded) -> Reals:
    least = _least(b)
    d = INFLATION * np.where(least > 0.0, a.error / least + y * (b.error / least), np.inf)
    # Through the reciprocal, its underflow is multiplied by the numerator.
    some = _may_be_some(a) & np.isfinite(b.magnitude)
    return _underflowing(c, d + 2.0 * c.ulps["divide"] * c.u * (y + d), 2.0 + a.magnitude + a.error, some)


def _matmul(c: RoundingModel, y: Reals, a: Any, b: Any) -> Reals:
    n = a.error.shape[-1]
    p, q, k = a.magnitude, b.magnitude, _grown(c, n)
    e: Reals = p @ (n * c.u * q + k * b.error) + a.error @ (k * (q + b.error)) + n * (c.underflow + c.flush)
    if _below(e, _safely(c, n * c.u)):
        return e
    return np.where(k * ((p + a.error) @ (q + b.error)) <= c.largest, e, np.inf)


def _sum(c: RoundingModel, y: Reals, x: Any, axis: Axis = None, keepdims: bool = False) -> Reals:
    n = x.error.size // max(y.size, 1)
    e = _total((n - 1) * c.u * x.magnitude + _grown(c, n) * x.error + c.flush, axis, keepdims)
    if n <= 1 or _below(e, _safely(c, (n - 1) * c.u)):
        return e
    # A partial sum may overflow although the sum does not.
    return np.where(_grown(c, n) * _total(x.magnitude + x.error, axis, keepdims) <= c.largest, e, np.inf)


def _cumsum(c: RoundingModel, y: Reals, x: Any, axis: int = -1) -> Reals:
    """Bound the sum of each first n entries, each in any order."""
    shape = [1] * x.error.ndim
    shape[axis] = -1
    n = np.arange(1.0, x.error.shape[axis] + 1).reshape(shape)
    terms, errors = (np.add.accumulate(part, axis=axis) for part in (x.magnitude, x.error))
    e: Reals = INFLATION * ((n - 1) * c.u * terms + (1 + n * c.u) * errors + n * c.flush)
    return np.where((1 + n * c.u) * INFLATION * (terms + errors) <= c.largest, e, np.inf)


def _max(c: RoundingModel, y: Reals, x: Bounded, axis: Axis = None, keepdims: bool = False) -> Reals:
    return np.asarray(_largest(x.error, axis=axis, keepdims=keepdims, initial=0.0))


def _larger(c: RoundingModel, y: Reals, a: Bounded, b: Bounded) -> Reals:
    return np.maximum(a.error, b.error)


def _same(c: RoundingModel, y: Reals, x: Bounded) -> Reals:
    return x.error


def _exp(c: RoundingModel, y: Reals, x: Bounded) -> Reals:
    d = y * np.expm1(x.error) * INFLATION
    # exp(x) as exp2(x · log₂e): the constant and the product are rounded, and shift the argument by (2 + u) u |x|.
    # An argument beyond the clip gives 0 or overflows; the clip keeps the exact −∞ from becoming 0 · ∞.
    shift = np.minimum(x.magnitude + x.error, 1e4) * ((2.0 + c.u) * c.u) + 2.0 * c.ulps["exp"] * c.u
    e = d + np.expm1(shift) * INFLATION * (y + d)
    # Fast forms, such as that of PyTorch's fused attention on the CPU, give 0 up to √2 times the smallest normal
    # number: they scale by a power of two whose exponent is the nearest integer to x log₂e, and take −126 for 0.
    least = 1.5 * (c.underflow / c.u) * np.exp(np.minimum(x.error, 700.0))
    return e + np.where(y < least, y, 0.0) + 2.0 * c.ulps["exp"] * c.underflow * c.vanished * np.isfinite(x.magnitude)


def _log(c: RoundingModel, y: Reals, x: Bounded) -> Reals:
    least = _least(x)
    d = INFLATION * np.where(least > 0.0, x.error / least, np.inf)
    return d + 2.0 * c.ulps["log"] * c.u * (y + d)


def _sqrt(c: RoundingModel, y: Reals, x: Bounded) -> Reals:
    # (â − v) / (√â + √v), and never more than √e, which also holds where the argument may be zero.
    d = x.error / (y * _DEFLATION + np.sqrt(_least(x)))
    d = INFLATION * np.where(x.error > 0.0, np.fmin(d, np.sqrt(x.error)), 0.0)
    return d + 2.0 * c.ulps["sqrt"] * c.u * (y + d)


def _sloped(name: str, slope: float) -> Callable[..., Reals]:
    """Return the rule of a function with |f′| ≤ slope."""

    def rule(c: RoundingModel, y: Reals, x: Bounded) -> Reals:
        d = slope * INFLATION * x.error
        return _underflowing(c, d + 2.0 * c.ulps[name] * c.u * (y + d), 2.0 * c.ulps[name], (y > 0.0) | _may_be_some(x))

    return rule


def _flattening(name: str, slope: Callable[[Reals], Reals]) -> Callable[..., Reals]:
    """Return the rule of a function whose |f′| falls with |x|: largest at the least magnitude between x̂ and x."""

    def rule(c: RoundingModel, y: Reals, x: Bounded) -> Reals:
        d = slope(_least(x)) * INFLATION * x.error
        return _underflowing(c, d + 2.0 * c.ulps[name] * c.u * (y + d), 2.0 * c.ulps[name], (y > 0.0) | _may_be_some(x))

    return rule


def _slope_of_tanh(t: Reals) -> Reals:
    """Return 1 − tanh² as 4 / (e^t + e^−t)², in which nothing cancels."""
    shrunk = np.exp(-t)
    slope: Reals = np.square(2.0 * shrunk / (1.0 + shrunk * shrunk))
    return slope


def _slope_of_erf(t: Reals) -> Reals:
    slope: Reals = 2.0 / math.sqrt(math.pi) * np.exp(-t * t)
    return slope


def _erf(c: RoundingModel, y: Reals, x: Bounded) -> Reals:
    return _flattening("erf", _slope_of_erf)(c, y, x) + c.erf_absolute


def _least(x: Bounded) -> Reals:
    """Return the least magnitude that x̂ can have; one below fp64's normal numbers is good to one subnormal."""
    return np.maximum((x.magnitude - x.error) * _DEFLATION - 2.0**-1073, 0.0)


def _grown(c: RoundingModel, n: int) -> float:
    """Return the factor by which n roundings may enlarge the error of an operand: (1 + n u) · INFLATION."""
    return (1.0 + n * c.u) * INFLATION


def _may_be_some(x: Bounded) -> NDArray[np.bool_]:
    """Return the mask where x̂ may be nonzero."""
    return x.magnitude + x.error > 0.0


def _underflowing(c: RoundingModel, e: Reals, times: Reals | float, some: NDArray[np.bool_]) -> Reals:
    """Grant underflow, unless the result is an exact zero.

    some: the mask where it may be nonzero. Value and bound do not show that: both may have underflowed in float64.
    """
    return e + np.where(some, c.underflow * times, 0.0)


def _safely(c: RoundingModel, nu: float) -> float:
    """Return a limit on a sum's error, at least nu = n u times its terms' magnitudes, below which none overflows."""
    return min(nu, 1.0) / (1.0 + nu + 2.0 * c.u) * c.largest * _DEFLATION


def _below(e: Reals, limit: float) -> bool:
    return bool(np.maximum.reduce(e, axis=None, initial=0.0) <= limit)


def _total(x: Reals, axis: Axis, keepdims: bool) -> Reals:
    return np.asarray(_sum_of(x, axis=axis, keepdims=keepdims))


RULES: Mapping[str, Callable[..., Reals]] = {
    "add": _add,
    "subtract": _add,
    "multiply": _multiply,
    "divide": _divide,
    "matmul": _matmul,
    "sum": _sum,
    "cumsum": _cumsum,
    "max": _max,
    "maximum": _larger,
    "minimum": _larger,
    "negative": _same,
    "absolute": _same,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "tanh": _flattening("tanh", _slope_of_tanh),
    "erf": _erf,
    "sin": _sloped("sin", 1.0),
    "cos": _sloped("cos", 1.0),
}
