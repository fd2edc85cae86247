"""Exact arithmetic: mpmath numbers with a precision far beyond any format. The oracle of fp64."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import libmp
from mpmath.ctx_mp import MPContext
from numpy.typing import NDArray

from veriformer.spec.arithmetic.plain import Plain
from veriformer.spec.arithmetic.vocabulary import Axis, Raw

# Numbers further apart than this are added one by one, since their common scale would be a huge integer.
_WIDEST_SCALE = 8192
# e^x leaves every format long before this, and its exponent must remain a number of reasonable size.
_LARGEST_EXPONENT = 2.0**20
# The angle's digits after the point are all that counts; beyond this, finding them takes long and no format holds it.
_LARGEST_ANGLE = 2**1100

_total: Any = np.add.reduce
_largest: Any = np.maximum.reduce


class Exact(Plain):
    """Evaluate a formula with `precision` bits per operation, on object arrays of mpmath numbers.

    The numbers live in a context of their own: mpmath's global precision is neither read nor changed. Sums and
    products of matrices are rounded once, at the end.
    """

    def __init__(self, precision: int = 200) -> None:
        self.precision = precision
        self.unit_roundoff = 2.0**-precision
        self.context = context = MPContext()
        context.prec = precision
        self._number = context.mpf
        self._bottom = context.mpf("-inf")
        self._convert = np.frompyfunc(self._convert_one, 1, 1)
        self._tofloat = np.frompyfunc(lambda x: libmp.to_float(x._mpf_, rnd="n"), 1, 1)
        self._magnitude = np.frompyfunc(self._magnitude_of_one, 1, 1)
        self.functions = {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": np.frompyfunc(self._divide_one, 2, 1),
            "negative": np.negative,
            "absolute": np.absolute,
            "sqrt": self._defined_from(0, context.sqrt),
            "exp": np.frompyfunc(self._exp_one, 1, 1),
            "log": self._defined_from(0, lambda x: context.log(x) if x else self._bottom),
            "tanh": np.frompyfunc(context.tanh, 1, 1),
            "erf": np.frompyfunc(context.erf, 1, 1),
            "sin": self._periodic(context.sin),
            "cos": self._periodic(context.cos),
            "maximum": np.maximum,
            "minimum": np.minimum,
            "matmul": self._matmul,
            "sum": self._sum,
            "cumsum": self._cumsum,
            "max": self._max,
        }

    def __repr__(self) -> str:
        return f"Exact({self.precision})"

    def convert(self, x: Any) -> Raw:
        """Convert to mpmath numbers: floats and integers without error, Fractions rounded to the precision."""
        return np.asarray(self._convert(np.asarray(x).astype(object)), dtype=object)

    def finish(self, y: Any) -> Raw:
        """Return results as they are."""
        return np.asarray(y, dtype=object)

    def tofloat(self, value: Raw) -> NDArray[np.float64]:
        """Round to the nearest float64."""
        with np.errstate(all="ignore"):
            return np.asarray(self._tofloat(value), dtype=np.float64)

    def magnitude(self, value: Raw) -> NDArray[np.float64]:
        """Return |value| to within a rounding of float64, but never less where float64 is subnormal."""
        return np.asarray(self._magnitude(value), dtype=np.float64)

    def _convert_one(self, x: Any) -> Any:
        if isinstance(x, Fraction):
            return self._number(x.numerator) / x.denominator
        return self._number(x)

    def _magnitude_of_one(self, x: Any) -> float:
        m: float = abs(libmp.to_float(x._mpf_))
        if m > 2.0**-1000 or not x:
            return m
        # Not zero, and must not become exact by looking like it.
        return m + 2.0**-1074

    def _divide_one(self, a: Any, b: Any) -> Any:
        if b:
            return a / b
        return a * self.context.inf if a else self.context.nan

    def _exp_one(self, x: Any) -> Any:
        if abs(x) <= _LARGEST_EXPONENT or self.context.isnan(x):
            return self.context.exp(x)
        if x > 0:
            return self.context.inf
        return self.context.exp(-_LARGEST_EXPONENT) if x > self._bottom else self.context.zero

    def _periodic(self, f: Callable[[Any], Any]) -> Callable[..., Any]:
        nan = self.context.nan
        bounded: Callable[..., Any] = np.frompyfunc(lambda x: f(x) if abs(x) <= _LARGEST_ANGLE else nan, 1, 1)
        return bounded

    def _defined_from(self, low: int, f: Callable[[Any], Any]) -> Callable[..., Any]:
        nan = self.context.nan
        guarded: Callable[..., Any] = np.frompyfunc(lambda x: f(x) if x >= low else nan, 1, 1)
        return guarded

    def _max(self, x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
        return _largest(x, axis=axis, keepdims=keepdims, initial=self._bottom)

    def _sum(self, x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
        scaled = self._scaled(x)
        if scaled is None:
            return _total(x, axis=axis, keepdims=keepdims)
        return self._unscaled(_total(scaled[0], axis=axis, keepdims=keepdims), scaled[1])

    def _cumsum(self, x: Raw, axis: int = -1) -> Any:
        scaled = self._scaled(x)
        if scaled is None:
            return np.add.accumulate(x, axis=axis)
        return self._unscaled(np.add.accumulate(scaled[0], axis=axis), scaled[1])

    def _matmul(self, a: Raw, b: Raw) -> Any:
        x, y = self._scaled(a), self._scaled(b)
        if x is None or y is None:
            return np.matmul(a, b)
        return self._unscaled(np.matmul(x[0], y[0]), x[1] + y[1])

    def _scaled(self, x: Raw) -> tuple[Raw, int] | None:
        """Return integers m and an exponent e with x = m · 2^e: added exactly, ten times as fast as mpmath numbers."""
        parts = [number._mpf_ for number in x.flat]
        exponents = [e for _, m, e, _ in parts if m]
        low = min(exponents, default=0)
        if max(exponents, default=0) - low > _WIDEST_SCALE or any(e and not m for _, m, e, _ in parts):
            return None
        integers = np.empty(x.size, dtype=object)
        integers[:] = [(-m if sign else m) << (e - low) if m else 0 for sign, m, e, _ in parts]
        return integers.reshape(x.shape), low

    def _unscaled(self, integers: Any, e: int) -> Any:
        number = lambda m: self.context.make_mpf(libmp.from_man_exp(m, e, self.precision, "n"))  # noqa: E731
        return np.frompyfunc(number, 1, 1)(integers)
