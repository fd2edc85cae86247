"""Float arithmetic: NumPy float64, every result rounded to the format. The plain formula in the same dtype."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.formats import FORMATS, Format
from veriformer.spec.arithmetic.plain import Plain
from veriformer.spec.arithmetic.vocabulary import Axis, Raw

_erf_of_one = np.frompyfunc(math.erf, 1, 1)
_largest: Any = np.maximum.reduce


def _erf(x: Raw) -> Raw:
    return np.asarray(_erf_of_one(x), dtype=np.float64)


def _max(x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
    return _largest(x, axis=axis, keepdims=keepdims, initial=-np.inf)


class Float(Plain):
    """Evaluate a formula in float64, rounding each operation's result to `format`.

    Sums and products of matrices accumulate in float64 and are rounded once, as hardware with wide accumulators does.
    """

    functions: Mapping[str, Callable[..., Any]] = {
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "divide": np.divide,
        "negative": np.negative,
        "absolute": np.absolute,
        "sqrt": np.sqrt,
        "exp": np.exp,
        "log": np.log,
        "tanh": np.tanh,
        "erf": _erf,
        "sin": np.sin,
        "cos": np.cos,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "matmul": np.matmul,
        "sum": np.add.reduce,
        "cumsum": np.add.accumulate,
        "max": _max,
    }

    def __init__(self, format: Format = FORMATS["fp64"]) -> None:
        self.format = format
        self.unit_roundoff = format.unit_roundoff

    def __repr__(self) -> str:
        return f"Float({self.format.name})"

    def convert(self, x: Any) -> Raw:
        """Copy the numbers as float64, rounded to the format."""
        return self.format.round(np.array(x, dtype=np.float64))

    def finish(self, y: Any) -> Raw:
        """Round results to the format."""
        return self.format.round(y)

    def magnitude(self, value: Raw) -> Raw:
        """Return |value|, or more by a rounding of float64."""
        return np.absolute(value)
