"""Costs: counted by loops, compared as polynomials, and their slopes."""

from itertools import product

import pytest
import sympy as sp

from veriformer.spec import costs
from veriformer.spec.attention.causal_mask import causal_mask

SIZES = {"B": 2, "H": 4, "G": 2, "n_q": 3, "n_k": 5, "d_k": 7, "d_v": 11, "w": 4, "T": 3}


def products(*matrices):
    """Two operations for every term of every entry of every matrix product (rows, inner, columns)."""
    return sum(2 for rows, inner, columns in matrices for _ in product(range(rows), range(inner), range(columns)))


def test_flops_by_counting():
    n_q, n_k, d_k, d_v = (SIZES[name] for name in ("n_q", "n_k", "d_k", "d_v"))
    heads = SIZES["B"] * SIZES["H"]
    forward = [(n_q, d_k, n_k), (n_q, n_k, d_v)]
    backward = [(n_k, n_q, d_v), (n_q, d_v, n_k), (n_q, n_k, d_k), (n_k, n_q, d_k)]
    found = costs.of("attention")
    assert costs.evaluate(found["FLOPs"], **SIZES) == heads * products(*forward)
    assert costs.evaluate(found["backward FLOPs"], **SIZES) == heads * products(*backward)
    assert costs.evaluate(found["backward FLOPs, tiled"], **SIZES) == heads * products(forward[0], *backward)


@pytest.mark.parametrize(("n", "block"), [(4, 2), (6, 3), (6, 1), (5, 5), (8, 2)])
def test_blocks_of_a_causal_mask_by_counting(n, block):
    mask = causal_mask(n, n)
    starts = range(0, n, block)
    seen = sum(block**2 for i, j in product(starts, starts) if mask[i : i + block, j : j + block].any())
    assert costs.evaluate(costs.causal_block_pairs(), n_q=n, T=block) == seen
    assert costs.evaluate(costs.causal_pairs(), n_q=n, n_k=n) == mask.sum()


def test_visible_pairs_of_a_rectangle():
    for n_q, n_k in ((1, 1), (2, 5), (4, 4)):
        assert costs.evaluate(costs.causal_pairs(), n_q=n_q, n_k=n_k) == causal_mask(n_q, n_k).sum()


def test_memory_of_the_printed_form_is_quadratic_and_of_blocks_linear():
    n_q, n_k = costs.symbol("n_q"), costs.symbol("n_k")
    assert sp.degree(costs.reference_attention_peak().subs(n_k, n_q), n_q) == 2
    assert sp.degree(costs.tiled_attention_peak().subs(n_k, n_q), n_q) == 1


def test_elasticity_is_the_slope_of_the_mixture():
    n, d = costs.symbol("n"), costs.symbol("d")
    cost = n**2 * d + n * d**2
    assert costs.elasticity(cost, "n", {"n": 100, "d": 300}) == sp.Rational(5, 4)
    assert costs.elasticity(cost, "n", {"n": 10**9, "d": 1}) < 2
    assert costs.elasticity(costs.attention_flops(), "n_q", SIZES) == 1


def test_every_operation_has_its_costs():
    for operation in costs.OPERATIONS:
        found = costs.of(operation)
        assert {"FLOPs", "other operations", "parameters"} <= set(found)
        assert set(costs.lazily(operation)) == set(found)
    assert costs.of("layer_norm")["parameters"] == 2 * costs.symbol("d")
    assert costs.lazily("softmax")["FLOPs"]() == 0


def test_unusable_questions():
    with pytest.raises(ValueError, match=r"operation.*softmax"):
        costs.of("nothing")
    with pytest.raises(ValueError, match=r"sizes.*d_v"):
        costs.evaluate(costs.attention_flops(), B=1, H=1, n_q=1, n_k=1, d_k=1)
