"""Exact interpolation of integer counts on a tensor grid: the one polynomial of bounded degrees through all of them.

A polynomial whose degree in each variable is below the number of that variable's nodes is determined by its values on
the grid of all nodes. Two such polynomials that agree there are equal everywhere. All is rational; nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import sympy

Point = Mapping[str, int]


@dataclass(frozen=True)
class Axis:
    """Variable of a grid: its nodes, whose number less one bounds the degree, and a value kept out of the fit."""

    name: str
    nodes: tuple[int, ...]
    beyond: int

    def __post_init__(self) -> None:
        if len({*self.nodes, self.beyond}) != len(self.nodes) + 1:
            raise ValueError(
                f"nodes: expected distinct values other than {self.beyond}, got {self.nodes} for {self.name}"
            )

    @property
    def degree_bound(self) -> int:
        """Return the largest degree in this variable that the grid can tell apart."""
        return len(self.nodes) - 1


@dataclass(frozen=True)
class Grid:
    """All combinations of the nodes of some variables."""

    axes: tuple[Axis, ...]

    def points(self) -> list[dict[str, int]]:
        """Return every grid point, the last variable moving fastest."""
        names = [axis.name for axis in self.axes]
        return [dict(zip(names, values, strict=True)) for values in product(*(axis.nodes for axis in self.axes))]

    def held_out(self) -> list[dict[str, int]]:
        """Points off the grid, where too low a degree shows: each variable beyond its nodes alone, then all of them."""
        corner = {axis.name: axis.nodes[-1] for axis in self.axes}
        beyond = {axis.name: axis.beyond for axis in self.axes}
        return [corner | {axis.name: axis.beyond} for axis in self.axes] + [beyond]

    def interpolate(self, values: Sequence[int]) -> Polynomial:
        """Return the polynomial through ``values``, listed as ``points()`` lists the points."""
        sizes = [len(axis.nodes) for axis in self.axes]
        table: Any = np.array([Fraction(value) for value in values], dtype=object).reshape(sizes)
        for position, axis in enumerate(self.axes):
            lagrange = _lagrange(axis.nodes)
            table = np.moveaxis(np.tensordot(lagrange, table, axes=(0, position)), 0, position)
        terms: dict[tuple[int, ...], Fraction] = {e: table[e] for e in np.ndindex(table.shape) if table[e]}
        return Polynomial(tuple(axis.name for axis in self.axes), terms)


@dataclass(frozen=True)
class Polynomial:
    """A polynomial with rational coefficients: exponents to coefficient, zero coefficients left out."""

    names: tuple[str, ...]
    terms: Mapping[tuple[int, ...], Fraction]

    def __call__(self, point: Point) -> Fraction:
        """Return its value at a point."""
        return sum((c * _monomial(self.names, exponents, point) for exponents, c in self.terms.items()), Fraction(0))

    def degree(self, name: str) -> int:
        """Return its degree in one variable."""
        position = self.names.index(name)
        return max((exponents[position] for exponents in self.terms), default=0)

    def expression(self, symbol: Callable[[str], sympy.Symbol]) -> sympy.Expr:
        """Return the polynomial in SymPy, factored, over the symbols that the names stand for."""
        import sympy

        letters = [symbol(name) for name in self.names]
        terms = [
            sympy.prod([sympy.Rational(c), *(x**e for x, e in zip(letters, exponents, strict=True))])
            for exponents, c in self.terms.items()
        ]
        return sympy.factor(sympy.Add(*terms))


def value_at(formula: sympy.Expr, point: Point) -> sympy.Expr:
    """Return the value of a SymPy expression in the symbols of the costs at a point."""
    from veriformer.spec.costs import symbol

    return formula.subs({symbol(name): value for name, value in point.items()})


def _monomial(names: Sequence[str], exponents: Sequence[int], point: Point) -> int:
    return reduce(lambda product, pair: product * int(point[pair[0]]) ** pair[1], zip(names, exponents, strict=True), 1)


def _lagrange(nodes: Sequence[int]) -> np.ndarray[Any, Any]:
    """Row i holds the coefficients, lowest first, of the polynomial that is 1 at node i and 0 at the others."""
    return np.array([_basis(node, [other for other in nodes if other != node]) for node in nodes], dtype=object)


def _basis(node: int, others: Sequence[int]) -> list[Fraction]:
    coefficients = [Fraction(1)]
    for other in others:
        lower = [Fraction(0), *coefficients]
        shifted = [*(-other * c for c in coefficients), Fraction(0)]
        coefficients = [(a + b) / (node - other) for a, b in zip(lower, shifted, strict=True)]
    return coefficients
