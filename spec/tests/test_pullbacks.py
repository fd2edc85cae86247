"""Derivatives of what is computed on arrays of any length, and the normal form of sums that they need."""

import pytest
import sympy as sp

from veriformer.spec.arithmetic.indicators import Place
from veriformer.spec.equation import Step
from veriformer.spec.layers.linear import linear, linear_vjp
from veriformer.spec.proofs.algebra import is_identically_zero
from veriformer.spec.proofs.any_length import AnyLength
from veriformer.spec.proofs.counterexample import numeric_counterexample
from veriformer.spec.proofs.indexed import delta, dimension, index, sum_over, vector, whole
from veriformer.spec.proofs.prover import prove
from veriformer.spec.proofs.pullbacks import pullbacks, pulled_back
from veriformer.spec.proofs.sums import tidy
from veriformer.spec.scores.softmax import softmax

N, D, F = map(dimension, "ndf")


def rightly(xp, x, w, b, g):
    return linear_vjp(xp, x, w, g)


def with_a_factor(xp, x, w, b, g):
    dx, dw, db = linear_vjp(xp, x, w, g)
    return dx, dw, db * 2


def transposed(xp, x, w, b, g):
    dx, dw, db = linear_vjp(xp, x, w, g)
    return dx, xp.swapaxes(dw, 0, 1), db


def not_summed(xp, x, w, b, g):
    dx, dw, _ = linear_vjp(xp, x, w, g)
    return dx, dw, g


def status(vjp):
    shapes = {"x": (N, D), "w": (D, F), "b": (F,)}
    return prove(Step(slug="made-up", claim="", identity=lambda: pullbacks(linear, vjp, shapes)), cached=False).status


def test_gradients_are_told_from_what_are_none():
    assert status(rightly) == "proved"
    assert status(with_a_factor) == "refuted"


@pytest.mark.parametrize("vjp", [transposed, not_summed])
def test_gradients_must_have_the_shapes_of_their_arguments(vjp):
    with pytest.raises(ValueError, match="expected the shape"):
        status(vjp)


def test_the_corner_of_a_maximum_is_written_as_a_quotient():
    xp, k = AnyLength(), index("k")
    x, g = vector("x")[k], vector("g")[k]
    slope = pulled_back(xp.maximum(xp.array("x", N), 0), x)
    assert is_identically_zero(slope - g * sp.Max(x, 0) / x)


def test_a_derivative_by_one_place_is_of_that_block_and_entry():
    xp, (h, s) = AnyLength(), index("h s")
    heads = xp.array("q", N * D)
    parts = xp.reshape(heads, (N, D))
    slope = pulled_back(parts, vector("q")[Place(h, s, D)])
    assert is_identically_zero(slope - vector("g")[h, s])
    assert not is_identically_zero(slope - vector("g")[s, h])


def test_single_numbers_have_one_cotangent():
    total = AnyLength().sum(softmax(AnyLength(), AnyLength().array("z", N)))
    assert is_identically_zero(pulled_back(total, vector("z")[index("k")]))


A, B, C = map(vector, "abc")


def test_products_of_sums_under_a_sum_are_one_sum():
    apart = sum_over(F, lambda j: C[j] * sum_over(N, lambda i: A[i, j]) * sum_over(D, lambda k: B[k, j]))
    within = sum_over(N, lambda i: sum_over(D, lambda k: sum_over(F, lambda j: C[j] * A[i, j] * B[k, j])))
    wrong = sum_over(N, lambda i: sum_over(D, lambda k: sum_over(F, lambda j: C[j] * A[i, j] * B[k, i])))
    assert is_identically_zero(apart - within)
    assert not is_identically_zero(apart - wrong)


def test_powers_of_sums_under_a_sum_are_sums_of_products():
    apart = sum_over(F, lambda j: C[j] * sum_over(N, lambda i: A[i, j]) ** 2)
    within = sum_over(F, lambda j: sum_over(N, lambda i: sum_over(N, lambda k: C[j] * A[i, j] * A[k, j])))
    diagonal = sum_over(F, lambda j: sum_over(N, lambda i: C[j] * A[i, j] ** 2))
    once = sum_over(F, lambda j: C[j] * sum_over(N, lambda i: A[i, j]))
    assert is_identically_zero(apart - within)
    assert not is_identically_zero(apart - diagonal)
    assert not is_identically_zero(apart - once)


def test_indices_have_one_order_before_those_around_them_have_names():
    def score(i, j, first):
        x = [lambda k: A[i, k] * B[k], lambda k: A[j, k] * C[k]]
        inner = x if first else x[::-1]
        return sum_over(F, lambda c: sum_over(D, lambda k: inner[0](k) * B[c] ** 2) * sum_over(D, inner[1]))

    def total(first):
        return sum_over(N, lambda j: sp.exp(score(index("i"), j, first)) * B[j])

    assert is_identically_zero(total(True) - total(False))


def test_exponentials_of_sums_stay_exponentials():
    def raised(sign):
        total = [sum_over(D, lambda k, i=i: A[i, k]) for i in index("i j")]
        return [sp.Sum(B[i] / (1 + sp.exp(sign * t)), (i, 1, N)) for i, t in zip(index("i j"), total, strict=True)]

    one, other = raised(1)
    assert is_identically_zero(one - other)
    assert not is_identically_zero(one - raised(-1)[0])
    assert not tidy(one).has(sp.Product)


def test_a_letter_is_a_number_or_is_none():
    y, k = whole("y"), index("k")
    hidden = delta(y[k], -100)
    assert is_identically_zero(hidden * (y[k] + 100))
    assert is_identically_zero((1 - hidden) * hidden)
    assert not is_identically_zero(hidden * (y[k] + 99))
    assert not is_identically_zero((1 - hidden) * (y[k] + 100))
    assert numeric_counterexample((1 - hidden) * (y[k] + 100), 0) is not None


def test_arguments_of_functions_are_compared_multiplied_out():
    x, y = sp.symbols("x y", real=True)
    assert is_identically_zero(sp.tanh(x * (x + y)) - sp.tanh(x**2 + x * y))
    assert not is_identically_zero(sp.tanh(x * (x + y)) - sp.tanh(x**2 - x * y))
