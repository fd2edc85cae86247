from fractions import Fraction
from math import prod

import hypothesis.strategies as st
import pytest
import sympy
from hypothesis import given, settings

from veriformer.bench.polynomials import Axis, Grid, Polynomial

NAMES = ("a", "b", "c")


@st.composite
def grids(draw):
    axes = []
    for name in NAMES[: draw(st.integers(1, 3))]:
        values = draw(st.lists(st.integers(-9, 30), min_size=2, max_size=4, unique=True))
        axes.append(Axis(name, tuple(values[1:]), values[0]))
    return Grid(tuple(axes))


@st.composite
def grids_and_polynomials(draw):
    grid = draw(grids())
    exponents = st.tuples(*(st.integers(0, axis.degree_bound) for axis in grid.axes))
    coefficients = st.fractions(-50, 50, max_denominator=12).filter(bool)
    terms = draw(st.dictionaries(exponents, coefficients, max_size=6))
    return grid, Polynomial(tuple(axis.name for axis in grid.axes), terms)


@pytest.mark.whole
@settings(max_examples=80, deadline=None)
@given(grids_and_polynomials())
def test_the_polynomial_through_its_own_values_is_the_polynomial_itself(case):
    grid, polynomial = case
    found = grid.interpolate([polynomial(point) for point in grid.points()])
    assert found == polynomial
    assert all(found(point) == polynomial(point) for point in grid.held_out())


@settings(max_examples=40, deadline=None)
@given(grids(), st.data())
def test_a_degree_above_the_bound_shows_off_the_grid(grid, data):
    axis = data.draw(st.sampled_from(grid.axes))

    def too_steep(point):
        return prod(point[axis.name] - node for node in axis.nodes)  # zero on the whole grid

    found = grid.interpolate([too_steep(point) for point in grid.points()])
    assert found.terms == {}
    assert any(found(point) != too_steep(point) for point in grid.held_out())


def test_degree_and_expression():
    polynomial = Polynomial(("n", "d"), {(2, 1): Fraction(4), (1, 1): Fraction(1, 2)})
    n, d = sympy.symbols("n d")
    assert (polynomial.degree("n"), polynomial.degree("d")) == (2, 1)
    assert sympy.expand(polynomial.expression(sympy.Symbol) - (4 * n**2 * d + n * d / 2)) == 0
    assert Polynomial(("n",), {}).degree("n") == 0


def test_nodes_must_be_distinct():
    with pytest.raises(ValueError, match="distinct values other than 3"):
        Axis("n", (1, 2, 3), 3)
