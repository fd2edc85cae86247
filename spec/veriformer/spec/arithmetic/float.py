"""Float arithmetic: NumPy float64, every result rounded to the format. The plain formula in the same dtype."""

import math
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.formats import FORMATS, Format
from veriformer.spec.arithmetic.vocabulary import Axis, Plain, Raw

_erf = np.frompyfunc(math.erf, 1, 1)


def _float_erf(x: Raw) -> Raw:
    return np.asarray(_erf(x), dtype=np.float64)


def _float_max(x: Raw, axis: Axis = None, keepdims: bool = False) -> Raw:
    return np.asarray(np.max(x, axis=axis, keepdims=keepdims, initial=-np.inf))


class Float(Plain):
    """Evaluate a formula in float64, rounding each operation's result to `format`.

    Sums and products of matrices accumulate in float64 and are rounded once, as hardware with wide accumulators does.
    """

    functions = {
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
        "erf": _float_erf,
        "sin": np.sin,
        "cos": np.cos,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "matmul": np.matmul,
        "sum": np.sum,
        "max": _float_max,
    }

    def __init__(self, format: Format = FORMATS["fp64"]) -> None:
        self.format = format

    def __repr__(self) -> str:
        return f"Float({self.format.name})"

    def convert(self, x: Any) -> Raw:
        """Numbers in float64, rounded to the format."""
        return self.format.round(x)
