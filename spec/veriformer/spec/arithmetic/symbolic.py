"""Symbolic arithmetic: object arrays of SymPy expressions, to derive, to prove and to print."""

from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.plain import Plain
from veriformer.spec.arithmetic.vocabulary import Axis, Raw

_UNARY = ("sqrt", "exp", "tanh", "erf", "sin", "cos")


class Symbolic(Plain):
    """Evaluate a formula on SymPy expressions.

    With `free_max`, the maximum along an axis is a fresh real symbol: what is proved then holds for any number in its
    place, the maximum among them, and a derivative need not look through it.
    """

    of_symbols = True

    def __init__(self, *, free_max: bool = False) -> None:
        # Imported here so that the package opens without the second that SymPy takes.
        import sympy

        self.free_max = free_max
        self._sympy = sympy
        self._convert = np.frompyfunc(self._convert_one, 1, 1)
        self.functions = {name: np.frompyfunc(getattr(sympy, name), 1, 1) for name in _UNARY} | {
            "log": np.frompyfunc(lambda x: sympy.log(x) if x != 0 else -sympy.oo, 1, 1),
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": np.divide,
            "negative": np.negative,
            "absolute": np.absolute,
            "maximum": np.frompyfunc(sympy.Max, 2, 1),
            "minimum": np.frompyfunc(sympy.Min, 2, 1),
            "matmul": np.matmul,
            "sum": np.add.reduce,
            "cumsum": np.add.accumulate,
            "max": self._max,
        }

    def __repr__(self) -> str:
        return "Symbolic(free_max=True)" if self.free_max else "Symbolic()"

    def convert(self, x: Any) -> Raw:
        """Convert numbers and expressions to SymPy: floats become the rational numbers they are."""
        return np.asarray(self._convert(np.asarray(x, dtype=object)), dtype=object)

    def finish(self, y: Any) -> Raw:
        """Return results as SymPy expressions; NumPy's empty sum is a Python 0."""
        y = np.asarray(y, dtype=object)
        return y if y.size and isinstance(y.flat[0], self._sympy.Basic) else self.convert(y)

    def _convert_one(self, x: Any) -> Any:
        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, float) and np.isfinite(x):
            x = Fraction(x)
        return self._sympy.sympify(x)

    def _max(self, x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
        if not self.free_max:
            largest: Any = np.frompyfunc(self._sympy.Max, 2, 1)
            return largest.reduce(x, axis=axis, keepdims=keepdims, initial=-self._sympy.oo)
        shape = np.asarray(np.sum(np.zeros(x.shape), axis=axis, keepdims=keepdims))
        return np.frompyfunc(lambda _: self._sympy.Dummy("m", real=True), 1, 1)(shape)
