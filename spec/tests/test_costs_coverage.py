"""Every operation has costs; those that are not matrix products are counted by loops over small cases."""

from itertools import combinations, pairwise

import pytest

from veriformer.spec import costs
from veriformer.spec.blocks import costs_model
from veriformer.spec.costs import BEAM, BYTE_PAIRS, GREEDY, SEARCH, UNIGRAM
from veriformer.spec.layers.weights import GPT2, gpt2_weights
from veriformer.spec.registry import equations

NOTHING_IS_COMPUTED = {"24b": "the variance of a score is a property of random vectors"}

COSTED = [equation for equation in equations() if equation.costs]


def test_every_numbered_equation_has_costs_or_computes_nothing():
    without = {equation.number for equation in equations() if equation.number and not equation.costs}
    assert without == set(NOTHING_IS_COMPUTED)


@pytest.mark.parametrize("equation", COSTED, ids=lambda equation: equation.slug)
def test_costs_are_numbers_where_sizes_are(equation):
    for name, cost in equation.costs.items():
        expression = cost()
        sizes = dict.fromkeys(expression.free_symbols, 6)
        assert expression.subs(sizes) >= 0, name
        assert expression.subs(sizes).is_number, name


@pytest.mark.parametrize("equation", COSTED, ids=lambda equation: equation.slug)
def test_no_cost_falls_as_a_size_grows_but_for_sizes_that_share_work(equation):
    shares = {"d_k", "G", "H"}
    for name, cost in equation.costs.items():
        expression = cost()
        at = dict.fromkeys(expression.free_symbols, 6)
        for symbol in expression.free_symbols:
            if symbol.name not in shares:
                slope = (symbol * expression.diff(symbol) / expression).subs(at)
                assert slope >= 0, (name, symbol)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 2), (5, 5), (7, 3)])
def test_pieces_of_a_text_by_counting(n, m):
    pieces = [(i, j) for i, j in combinations(range(n + 1), 2) if j - i <= m]
    cuts = [tuple(pairwise((0, *inner, n))) for k in range(n) for inner in combinations(range(1, n), k)]
    assert costs.evaluate(UNIGRAM["pieces considered"](), n=n, m=m) == len(pieces)
    assert costs.evaluate(UNIGRAM["segmentations of an exhaustive search"](), n=n) == len(cuts)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_pairs_scanned_while_everything_merges(n):
    length, looked_at = n, 0
    while length > 1:
        looked_at += length - 1
        length -= 1
    assert costs.evaluate(BYTE_PAIRS["pairs looked at in encoding, at most"](), n=n) == looked_at


def test_comparisons_of_a_beam_and_of_a_maximum():
    rows, vocabulary, width, rounds = 3, 5, 2, 4
    compared = sum(1 for _ in range(rounds) for _ in range(width) for _ in range(vocabulary))
    at_most = BEAM["continuations that are compared, at most"]()
    assert costs.evaluate(at_most, b=width, T=rounds, V=vocabulary) == compared
    assert costs.evaluate(GREEDY["comparisons"](), N=rows, d=vocabulary) == rows * (vocabulary - 1)
    assert costs.evaluate(SEARCH["FLOPs"](), N=rows, d=vocabulary) == sum(2 for _ in range(rows * vocabulary))


def products(*matrices):
    """Two operations for every term of every entry: rows × inner × columns."""
    return sum(2 * rows * inner * columns for rows, inner, columns in matrices)


def test_a_model_by_counting_its_products():
    v, layers, heads, d, n = 11, 3, 2, 4, 5
    block = [(n, d, d)] * 4 + [(n, d // heads, n), (n, n, d // heads)] * heads + [(n, d, 4 * d), (n, 4 * d, d)]
    sizes = {"V": v, "L": layers, "d": d, "n": n, "H": heads, "c": n, "w": 2}
    assert costs.evaluate(costs_model.forward_flops(), **sizes) == layers * products(*block) + products((n, d, v))
    step = [(1, d, d)] * 4 + [(1, d // heads, n), (1, n, d // heads)] * heads + [(1, d, 4 * d), (1, 4 * d, d)]
    assert costs.evaluate(costs_model.step_flops(), **sizes) == layers * products(*step) + products((1, d, v))


def test_a_model_without_biases_in_its_projections_is_that_much_smaller_than_gpt2():
    class Plain:
        @staticmethod
        def asarray(x):
            return x

    whole = gpt2_weights(Plain(), GPT2["V"], GPT2["n"], GPT2["L"], GPT2["d"])
    ours = costs.evaluate(costs_model.parameters(), **costs_model.GPT2)
    assert whole - ours == GPT2["L"] * 4 * GPT2["d"]


def test_the_elasticity_of_a_model_is_the_slope_that_its_derivation_names():
    at = {"V": 50257, "L": 12, "d": 768, "n": 1024}
    slope = costs.elasticity(costs_model.forward_flops(), "n", at)
    v, layers, d, n = at.values()
    assert slope == 1 + costs.sp.Rational(4 * layers * n, 24 * layers * d + 2 * v + 4 * layers * n)
