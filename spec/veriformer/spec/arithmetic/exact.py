"""Exact arithmetic: mpmath numbers with a precision far beyond any format. The oracle of fp64."""

from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext

from veriformer.spec.arithmetic.vocabulary import Axis, Plain, Raw


class Exact(Plain):
    """Evaluate a formula with `precision` bits per operation, on object arrays of mpmath numbers.

    The numbers live in a context of their own: mpmath's global precision is neither read nor changed.
    """

    def __init__(self, precision: int = 200) -> None:
        self.precision = precision
        self.context = context = MPContext()
        context.prec = precision
        self._number = context.mpf
        self._tonumber = np.frompyfunc(self._convert_one, 1, 1)
        zero, bottom = context.mpf(0), context.mpf("-inf")

        def exact_sum(x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
            return np.sum(x, axis=axis, keepdims=keepdims, initial=zero)

        def exact_max(x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
            return np.max(x, axis=axis, keepdims=keepdims, initial=bottom)

        def exact_matmul(a: Raw, b: Raw) -> Any:
            return np.matmul(a, b) if a.shape[-1] else zero + np.zeros(np.matmul(a, b).shape)

        def exact_divide(a: Any, b: Any) -> Any:
            if b:
                return a / b
            return context.nan if not a or context.isnan(a) else a * context.inf

        def exact_log(a: Any) -> Any:
            return context.log(a) if a > 0 else (bottom if a == 0 else context.nan)

        self.functions = {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": np.frompyfunc(exact_divide, 2, 1),
            "negative": np.negative,
            "absolute": np.absolute,
            "sqrt": np.frompyfunc(context.sqrt, 1, 1),
            "exp": np.frompyfunc(context.exp, 1, 1),
            "log": np.frompyfunc(exact_log, 1, 1),
            "tanh": np.frompyfunc(context.tanh, 1, 1),
            "erf": np.frompyfunc(context.erf, 1, 1),
            "sin": np.frompyfunc(context.sin, 1, 1),
            "cos": np.frompyfunc(context.cos, 1, 1),
            "maximum": np.maximum,
            "minimum": np.minimum,
            "matmul": exact_matmul,
            "sum": exact_sum,
            "max": exact_max,
        }

    def __repr__(self) -> str:
        return f"Exact({self.precision})"

    def _convert_one(self, x: Any) -> Any:
        if type(x) is self._number:
            return x
        if hasattr(x, "numerator") and not isinstance(x, int):
            return self._number(int(x.numerator)) / int(x.denominator)
        return self._number(x)

    def convert(self, x: Any) -> Raw:
        """Numbers as mpmath numbers: floats and dyadic numbers without error, Fractions rounded to the precision."""
        if isinstance(x, np.ndarray) and x.dtype != object:
            x = np.asarray(x, dtype=np.float64).astype(object) if x.dtype.kind == "f" else x.astype(object)
        elif isinstance(x, np.ndarray) and x.size and type(x.flat[0]) is self._number:
            return x
        return np.asarray(self._tonumber(np.asarray(x, dtype=object)), dtype=object)
