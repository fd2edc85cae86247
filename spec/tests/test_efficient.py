"""Caches, int8 and linear attention at their edges, decoding for every split, gradients, and costs."""

from itertools import product

import numpy as np
import pytest

from tests.values import EXACT, XP, floats
from veriformer.spec import costs
from veriformer.spec.arithmetic import FORMATS, Float, RunningError
from veriformer.spec.attention.attention import attention
from veriformer.spec.efficient import costs_cache
from veriformer.spec.efficient.cached_attention import cached_attention, cached_attention_vjp, decoded, splits
from veriformer.spec.efficient.int8 import int8_codes, int8_half_step, int8_round_trip
from veriformer.spec.efficient.kv_cache import cache_reorder, cache_reset, cache_update, kv_cache
from veriformer.spec.efficient.linear_attention import (
    FEATURE_MAPS,
    State,
    linear_attention,
    linear_attention_vjp,
    linear_step,
)
from veriformer.spec.efficient.linear_recurrence import linear_flops, state_bytes
from veriformer.spec.registry import select

C = EXACT.context


def drawn(*shapes, seed=0, xp=EXACT):
    rng = np.random.default_rng(seed)
    return [xp.asarray(rng.normal(size=shape)) for shape in shapes]


def rows(b=2, g=2, n=3, d=2, **more):
    return drawn((b, g, n, d), (b, g, n, d), **more)


@pytest.mark.parametrize("window", [None, 1, 2, 3, 9])
def test_decoding_is_the_full_computation_for_every_split(window):
    (q,), (k, v) = drawn((2, 4, 5, 2), seed=3), rows(n=5)
    full = floats(attention(EXACT, q, k, v, is_causal=True, window=window))
    for sizes in splits(5):
        assert floats(decoded(EXACT, q, k, v, sizes, window=window)).tolist() == full.tolist()


def test_a_cache_appends_reorders_and_resets():
    k, v = rows(n=4, xp=XP)
    cache = kv_cache(XP, 2, 2, 4, 2)
    assert cache_reorder(XP, cache, np.array([1, 0])).k.shape == (2, 2, 0, 2)
    first, k_1, _ = cache_update(XP, cache, k[:, :, :1], v[:, :, :1])
    second, k_4, v_4 = cache_update(XP, first, k[:, :, 1:], v[:, :, 1:])
    assert (cache.length, first.length, second.length, k_1.shape[2]) == (0, 1, 4, 1)
    assert (k_4.value == k.value).all()
    assert (v_4.value == v.value).all()
    swapped = cache_reorder(XP, second, np.array([1, 1]))
    assert (swapped.k.value == k.value[[1, 1]]).all()
    assert (swapped.v.value == v.value[[1, 1]]).all()
    again = cache_reset(second)
    assert (again.length, again.k.shape, again.v.shape, again.max_length) == (0, (2, 2, 0, 2), (2, 2, 0, 2), 4)
    with pytest.raises(ValueError, match="k_new: expected at most 3"):
        cache_update(XP, first, k, v)


@pytest.mark.parametrize("options", [{"quantization": "fp4"}, {"window": 0}], ids=str)
def test_a_cache_that_cannot_be(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}: expected"):
        kv_cache(XP, 1, 1, 1, 1, **options)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_window_shows_its_latest_rows(window):
    k, v = rows(n=6, xp=XP)
    cache, end = kv_cache(XP, 2, 2, 6, 2, window=window), 0
    for size in (1, 2, 1, 2):
        end += size
        cache, k_now, v_now = cache_update(XP, cache, k[:, :, end - size : end], v[:, :, end - size : end])
        kept = min(end, window - 1 + size)
        assert (k_now.value == k.value[:, :, end - kept : end]).all()
        assert (v_now.value == v.value[:, :, end - kept : end]).all()
    assert cache.length == 6


def numerically(formula, args, cotangent):
    """Central differences: with h = 2^-90 the error is about 2^-180, far below what rounding to fp64 shows."""
    h = C.ldexp(1, -90)
    for which, x in enumerate(args):
        out = np.empty(x.shape)
        for place in np.ndindex(*x.shape):
            sides = []
            for step in (h, -h):
                moved = x.value.copy()
                moved[place] += step
                y = formula(*[EXACT.asarray(moved) if i == which else a for i, a in enumerate(args)])
                sides.append((cotangent.value * y.value).sum())
            out[place] = float((sides[0] - sides[1]) / (2 * h))
        yield out


@pytest.mark.parametrize(("window", "more"), [(None, {}), (2, {"scale": 0.7, "softcap": 1.5})])
def test_gradients_over_a_cache_numerically(window, more):
    k_old, v_old = rows(1, 1, 2, 2, seed=4)
    q, g = drawn((1, 2, 2, 2), (1, 2, 2, 2), seed=5)
    k, v = rows(1, 1, 2, 2, seed=6)
    cache = cache_update(EXACT, kv_cache(EXACT, 1, 1, 4, 2, window=window), k_old, v_old)[0]
    gradients = cached_attention_vjp(EXACT, q, k, v, cache, g, **more)
    numeric = numerically(lambda *x: cached_attention(EXACT, *x, cache, **more)[0], (q, k, v), g)
    for ours, theirs in zip(gradients, numeric, strict=True):
        assert floats(ours).tolist() == theirs.tolist()


def test_int8_is_the_nearest_code():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4, 3, 6)) * 10.0 ** rng.integers(-5, 6, size=(4, 3, 1))
    codes = int8_codes(EXACT, EXACT.asarray(x))
    assert codes.dtype == np.int8
    levels = np.arange(-127, 128)
    for row, found in zip(x.reshape(-1, 6), codes.reshape(-1, 6), strict=True):
        a = max(abs(row))
        assert [levels[np.argmin(abs(levels * (a / 127) - e))] for e in row] == found.tolist()
        assert 127 in abs(found.astype(int))


@pytest.mark.parametrize("slug", ["int8-cache"])
def test_int8_errs_by_half_a_step_at_most(slug):
    (equation,), rng = select(slug), np.random.default_rng(8)
    for _ in range(20):
        x = EXACT.asarray(equation.sample(rng)["x"])
        assert (abs(x - int8_round_trip(EXACT, x)).value <= int8_half_step(EXACT, x).value).all()


def test_int8_at_the_half_and_at_zero():
    x = EXACT.asarray([[127, 2.5, -0.5, 63.5], [0, 0, 0, 0]])
    assert int8_codes(EXACT, x).tolist() == [[127, 2, 0, 64], [0, 0, 0, 0]]
    assert floats(int8_round_trip(EXACT, x)).tolist() == [[127, 2, 0, 64], [0, 0, 0, 0]]
    assert floats(int8_half_step(EXACT, x)).tolist() == [[0.5], [0.0]]


def test_a_cache_of_bytes_returns_what_it_stores():
    k, v = rows(n=3, xp=XP)
    cache = kv_cache(XP, 2, 2, 4, 2, quantization="int8")
    cache, k_1, _ = cache_update(XP, cache, k[:, :, :1], v[:, :, :1])
    cache, k_3, v_3 = cache_update(XP, cache, k[:, :, 1:], v[:, :, 1:])
    assert (k_3.value[:, :, :1] == k_1.value).all()
    assert (v_3.value == int8_round_trip(XP, v).value).all()
    assert (k_3.value != k.value).any()


def test_linear_attention_step_by_step():
    q, k, v = drawn((2, 2, 5, 3), (2, 2, 5, 3), (2, 2, 5, 2), seed=10)
    state = State(EXACT.asarray(np.zeros((2, 2, 3, 2))), EXACT.asarray(np.zeros((2, 2, 3, 1))))
    out = []
    for i in range(5):
        o, state = linear_step(EXACT, state, *(x[:, :, i : i + 1] for x in (q, k, v)))
        out.append(o)
    assert (
        floats(EXACT.concat(out, axis=2)).tolist() == floats(linear_attention(EXACT, q, k, v, is_causal=True)).tolist()
    )


@pytest.mark.parametrize(("n_q", "n_k", "causal"), [(2, 3, False), (3, 3, True), (3, 2, True), (1, 3, True)])
def test_gradients_of_linear_attention_numerically(n_q, n_k, causal):
    q, k, v, g = drawn((1, 1, n_q, 2), (1, 1, n_k, 2), (1, 1, n_k, 2), (1, 1, n_q, 2), seed=11)
    gradients = linear_attention_vjp(EXACT, q, k, v, g, is_causal=causal)
    numeric = numerically(lambda *x: linear_attention(EXACT, *x, is_causal=causal), (q, k, v), g)
    for ours, theirs in zip(gradients, numeric, strict=True):
        assert floats(ours).tolist() == theirs.tolist()


def test_linear_attention_at_its_edges():
    q, k, v = drawn((1, 1, 3, 2), (1, 1, 2, 2), (1, 1, 2, 2), xp=XP)
    o = floats(linear_attention(XP, q, k, v, is_causal=True))
    assert (o[0, 0, 0] == 0).all()
    assert (o[0, 0, 1] == v.value[0, 0, 0]).all()
    zero = XP.asarray(np.zeros((1, 1, 2, 2)))
    dq, _, _ = linear_attention_vjp(XP, zero, k, v, v)
    assert np.isfinite(floats(dq)).all()
    nothing = linear_attention(XP, q, k[:, :, :0], v[:, :, :0])
    assert (floats(nothing) == np.zeros((1, 1, 3, 2))).all()
    with pytest.raises(KeyError, match="relu"):
        linear_attention(XP, q, k, v, feature_map="relu")


def test_bounds_hold_for_either_order_of_the_products():
    rng, xp = np.random.default_rng(12), RunningError(FORMATS["fp32"])
    q, k, v = (rng.normal(size=(1, 2, n, 3)).astype(np.float32) for n in (4, 6, 6))
    exact, bound = xp.judgeable(linear_attention(xp, *(xp.asarray(x.astype(np.float64)) for x in (q, k, v))))
    f, g = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    state_first = f @ (np.swapaxes(g, -1, -2) @ v) / (f @ g.sum(axis=-2)[..., None])
    assert state_first.dtype == np.float32
    assert (abs(state_first - exact) <= bound).all()
    assert (abs(np.roll(state_first, 1, axis=-1) - exact) > bound).any()


def products(*matrices):
    return sum(2 for rows_, inner, columns in matrices for _ in product(range(rows_), range(inner), range(columns)))


def test_costs_by_counting():
    sizes = {"B": 2, "H": 3, "n_q": 4, "n_k": 5, "d_k": 2, "d_v": 7}
    counted = 6 * products((2, 5, 7), (4, 2, 7), (4, 2, 1))
    assert costs.evaluate(linear_flops(), **sizes) == counted
    assert costs.evaluate(state_bytes(), w=4, **sizes) == 4 * 6 * (2 * 7 + 2)
    d, heads = 6, 3
    for t in (1, 2, 5):
        per_head = d // heads
        again = products(*[(t, d, d)] * 4, *[(t, per_head, t), (t, t, per_head)] * heads)
        one = products(*[(1, d, d)] * 4, *[(1, per_head, t), (1, t, per_head)] * heads)
        at = {"t": t, "d": d}
        assert costs.evaluate(costs_cache.without_cache(), **at) == again
        assert costs.evaluate(costs_cache.with_cache(), **at) == one


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_slopes_of_feature_maps_are_their_derivatives(name):
    xp, feature = Float(), FEATURE_MAPS[name]
    x, h = np.array([-3.0, -0.5, 0.4, 2.0]), 1e-6
    ends = [feature.function(xp, xp.asarray(x + s)).value for s in (h, -h)]
    slope = feature.slope(xp, xp.asarray(x)).value
    # Differences of numbers near 1 keep ten digits of the slope.
    assert (abs(slope - (ends[0] - ends[1]) / (2 * h)) < 1e-9).all()
