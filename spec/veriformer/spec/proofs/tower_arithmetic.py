"""Symbolic arithmetic over a tower of exponentials: each is a generator of its own, with dE/ds = E.

A formula and its vector-Jacobian product, evaluated over the same tower, are rational functions of shared generators.
One `simplify` of the whole would not get there; comparing rational functions does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.provenance import flat


class TowerArithmetic(Symbolic):
    """Symbolic arithmetic whose exponentials are remembered generators, and whose maxima are remembered shifts."""

    def __init__(self) -> None:
        super().__init__(free_max=True)
        self._exponentials: dict[Any, Any] = {}
        self._maxima: dict[Any, Any] = {}
        largest = self.functions["max"]

        def remembered_max(x: Any, **options: Any) -> Any:
            return self._maxima.setdefault(_key(x, options), largest(x, **options))

        self.functions = {**self.functions, "exp": np.frompyfunc(self._exp, 1, 1), "max": remembered_max}

    def _exp(self, argument: Any) -> Any:
        """Return a generator for e^argument; logarithms leave the exponent."""
        rest, factor = sp.S.Zero, sp.S.One
        for term in sp.Add.make_args(argument):
            q, f = term.as_coeff_Mul()
            if isinstance(f, sp.log):
                factor *= f.args[0] ** q
            else:
                rest += term
        if rest == -sp.oo:
            return sp.S.Zero
        return factor * self._exponentials.setdefault(rest, sp.Dummy(f"E{len(self._exponentials)}", positive=True))

    def derivative(self, e: Any, x: Any) -> Any:
        """Return ∂e/∂x by SymPy, with the chain rule through every generator."""
        total = sp.diff(e, x)
        for argument, generator in self._exponentials.items():
            if e.has(generator):
                total += sp.diff(e, generator) * generator * self.derivative(argument, x)
        return total

    def in_full(self, e: Any) -> Any:
        """Return the expression with its generators written as exponentials again."""
        for argument, generator in reversed(self._exponentials.items()):
            e = e.xreplace({generator: sp.exp(argument)})
        return e

    def gradient(self, outputs: Any, cotangent: Any, x: Any) -> list[Any]:
        """Return Σ g ⊙ ∂(outputs)/∂x for every entry of x, the definition of a vector-Jacobian product."""
        scalar = sum(g * o for g, o in zip(entries(cotangent), entries(outputs), strict=True))
        return [self.derivative(scalar, entry) for entry in entries(x)]

    def symbols(self, name: str, *shape: int, **assumptions: bool) -> Any:
        """Return an array of real symbols with this name."""
        return self.asarray(symbols(name, *shape, **assumptions))


def symbols(name: str, *shape: int, **assumptions: bool) -> Any:
    """Return a NumPy object array of real symbols, numbered by their indices."""
    array = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        array[index] = sp.Symbol(name + "".join(f"_{i + 1}" for i in index), **(assumptions or {"real": True}))
    return array


def entries(x: Any) -> list[Any]:
    """Return the entries of an array of any arithmetic, of a NumPy array, or of a sequence."""
    return flat(x)


def _key(x: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    return (tuple(np.ravel(x)), np.shape(x), tuple(sorted(options.items())))
