"""Symbolic arithmetic: arrays of SymPy expressions, to derive, to prove and to print."""

from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.vocabulary import Axis, Plain, Raw


class Symbolic(Plain):
    """Evaluate a formula on SymPy expressions.

    With `free_max`, the maximum along an axis is a fresh real symbol: what is proved then holds for any number in its
    place, the maximum among them, and a derivative need not look through it.
    """

    def __init__(self, *, free_max: bool = False) -> None:
        import sympy

        def symbolic_max(x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
            if free_max:
                shape = np.sum(np.zeros(x.shape), axis=axis, keepdims=keepdims).shape
                return np.array([sympy.Dummy("m", real=True) for _ in range(int(np.prod(shape)))], object).reshape(
                    shape
                )
            return np.frompyfunc(sympy.Max, 2, 1).reduce(x, axis=axis, keepdims=keepdims, initial=-sympy.oo)

        def symbolic_sum(x: Raw, axis: Axis = None, keepdims: bool = False) -> Any:
            return np.sum(x, axis=axis, keepdims=keepdims, initial=sympy.Integer(0))

        self._sympify = np.frompyfunc(self._sympify_one, 1, 1)
        unary = {f: np.frompyfunc(getattr(sympy, f), 1, 1) for f in ("sqrt", "exp", "log", "tanh", "erf", "sin", "cos")}
        self.functions = unary | {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": np.divide,
            "negative": np.negative,
            "absolute": np.absolute,
            "maximum": np.frompyfunc(sympy.Max, 2, 1),
            "minimum": np.frompyfunc(sympy.Min, 2, 1),
            "matmul": np.matmul,
            "sum": symbolic_sum,
            "max": symbolic_max,
        }

    def __repr__(self) -> str:
        return "Symbolic()"

    @staticmethod
    def _sympify_one(x: Any) -> Any:
        import sympy

        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, float) and np.isfinite(x):
            x = Fraction(x)
        return sympy.sympify(x)

    def convert(self, x: Any) -> Raw:
        """Numbers and expressions as SymPy expressions: floats become the rational numbers they are."""
        return np.asarray(self._sympify(np.asarray(x, dtype=object)), dtype=object)
