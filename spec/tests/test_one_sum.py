"""A sum over several axes, heads or matrices is one sum: its bound grants the roundings of every order of all terms."""

import numpy as np

from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.attention.attention import attention_vjp
from veriformer.spec.heads.multi_head_attention import multi_head_attention_vjp
from veriformer.spec.layers.layer_norm import layer_norm_vjp
from veriformer.spec.layers.mixture_of_experts import of_all_experts
from veriformer.spec.layers.silu import silu, silu_slope
from veriformer.spec.layers.swiglu import swiglu_vjp

FP32 = RunningError(FORMATS["fp32"])
U = FORMATS["fp32"].unit_roundoff
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32).astype(np.float64)


def in_a_row(terms, axis):
    """The sum as fp32 gives it that goes through the terms one by one."""
    total = np.zeros(np.delete(terms.shape, axis), dtype=np.float32)
    for term in np.moveaxis(terms, axis, 0):
        total = total + term.astype(np.float32)
    return total


def test_equal_rows_of_many_axes():
    row = np.float32(1.5564509630203247)
    x, g = FP32.asarray(normal(3, 6, 7)), FP32.asarray(np.full((3, 6, 7), row, dtype=np.float64))
    ones = FP32.asarray(np.ones(7))
    *_, bias = layer_norm_vjp(FP32, x, ones, ones, g)
    assert (bias.error >= 17 * U * 18 * row).all()
    lost = np.abs(in_a_row(np.full((18, 7), row), 0) - bias.value)
    assert (lost <= bias.error).all()


def test_heads_of_a_group_are_queries_of_one_head():
    q, k, v, g = normal(1, 4, 6, 3), normal(1, 1, 5, 3), normal(1, 1, 5, 2), normal(1, 4, 6, 2)
    heads = attention_vjp(FP32, *map(FP32.asarray, (q, k, v, g)))
    rows = (q.reshape(1, 1, 24, 3), k, v, g.reshape(1, 1, 24, 2))
    queries = attention_vjp(FP32, *map(FP32.asarray, rows))
    for of_heads, of_queries in zip(heads[1:3], queries[1:3], strict=True):
        assert (of_heads.value == of_queries.value).all()
        assert (of_heads.error == of_queries.error).all()


def test_matrices_side_by_side():
    x, gate, up, down, g = (FP32.asarray(normal(*shape)) for shape in ((3, 5), (5, 8), (5, 8), (8, 5), (3, 5)))
    dx = swiglu_vjp(FP32, x, gate, up, down, g)[0]
    s, dh = FP32.matmul(x, gate), FP32.matmul(g, FP32.swapaxes(down, 0, 1))
    of_gate = FP32.matmul(dh * FP32.matmul(x, up) * silu_slope(FP32, s), FP32.swapaxes(gate, 0, 1))
    of_up = FP32.matmul(dh * silu(FP32, s), FP32.swapaxes(up, 0, 1))
    # One sum of 16 columns, and not two of 8 and their sum.
    assert (dx.error > of_gate.error + of_up.error + 7 * U * np.abs(dx.value)).all()


def test_the_projections_of_queries_keys_and_values():
    x, g = normal(1, 4, 6), normal(1, 4, 6)
    w = [normal(6, 6) for _ in range(4)]
    dx, *_ = multi_head_attention_vjp(FP32, *map(FP32.asarray, (x, *w, g)), num_heads=2)
    # As its own context the input gets the sum of what both would get, of 18 columns and not of 6 and 12.
    other = {"context": FP32.asarray(x), "num_heads": 2}
    apart, *_, of_context = multi_head_attention_vjp(FP32, *map(FP32.asarray, (x, *w, g)), **other)
    assert (dx.error > apart.error + of_context.error + 5 * U * np.abs(dx.value)).all()


def test_all_experts():
    dz, w1 = np.ones((4, 3, 8)), np.ones((4, 5, 8))
    dx = of_all_experts(FP32, FP32.asarray(dz), FP32.asarray(w1))
    assert (dx.value == 32).all()
    assert (dx.error >= 32 * U * 32).all()
