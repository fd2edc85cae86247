"""Multi-head attention by a second route, its gradients numerically, its costs by counting."""

from itertools import product

import numpy as np
import pytest

from veriformer.spec import costs
from veriformer.spec.arithmetic import FORMATS, Exact, Float, RunningError
from veriformer.spec.heads.multi_head_attention import concat, multi_head_attention, multi_head_attention_vjp, split
from veriformer.spec.heads.weights import COSTS
from veriformer.spec.proofs.tower_arithmetic import entries
from veriformer.spec.registry import equations

XP = Float()
# Two computations with 300 bits agree when they are rounded to fp64.
EXACT = Exact(300)
C = EXACT.context
NAMES = ("x", "w_q", "w_k", "w_v", "w_o")


def floats(x):
    return np.array([float(e) for e in entries(x)]).reshape(np.shape(getattr(x, "value", x)))


def inputs(heads=4, groups=2, n_q=3, n_k=None, d=5, d_k=2, d_v=3, d_out=4, d_c=6, batch=2, seed=0):
    rng = np.random.default_rng(seed)
    width = d if n_k is None else d_c
    shapes = {"x": (batch, n_q, d), "w_q": (d, heads * d_k), "w_k": (width, groups * d_k), "w_v": (width, groups * d_v)}
    shapes |= {"w_o": (heads * d_v, d_out)} | ({} if n_k is None else {"context": (batch, n_k, d_c)})
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}, {
        "num_heads": heads,
        "num_kv_heads": groups,
    }


def lifted(xp, arrays):
    return {name: xp.asarray(x) for name, x in arrays.items()}


def run(arrays, xp=XP, **options):
    return floats(multi_head_attention(xp, **lifted(xp, arrays), **options))


def seen_by(i, n_q, n_k, is_causal, hidden):
    return [j for j in range(n_k) if not hidden[j] and not (is_causal and j > i + n_k - n_q)]


def route(a, num_heads, num_kv_heads=None, attention_mask=None, is_causal=False):
    """Token by token and head by head, in plain sums."""
    a = {name: EXACT.asarray(x).value for name, x in a.items()}
    c, groups = a.get("context", a["x"]), num_kv_heads or num_heads
    (batch, n_q, _), n_k, d_k = a["x"].shape, c.shape[1], a["w_q"].shape[1] // num_heads
    d_v = a["w_v"].shape[1] // groups
    out = np.full((batch, n_q, a["w_o"].shape[1]), C.mpf(0), dtype=object)
    for b, i, h in product(range(batch), range(n_q), range(num_heads)):
        g = h * groups // num_heads
        q = a["x"][b, i] @ a["w_q"][:, h * d_k : (h + 1) * d_k]
        hidden = [False] * n_k if attention_mask is None else [not e for e in attention_mask[b]]
        seen = seen_by(i, n_q, n_k, is_causal, hidden)
        e = {j: C.exp(q @ (c[b, j] @ a["w_k"][:, g * d_k : (g + 1) * d_k]) / C.sqrt(d_k)) for j in seen}
        for j in seen:
            v = c[b, j] @ a["w_v"][:, g * d_v : (g + 1) * d_v]
            out[b, i] += e[j] / C.fsum(e.values()) * (v @ a["w_o"][h * d_v : (h + 1) * d_v])
    return out


CASES = {
    "self": ({}, {}),
    "causal": ({}, {"is_causal": True}),
    "padded": ({}, {"attention_mask": [[1, 1, 0], [0, 1, 1]]}),
    "padded-and-causal": ({}, {"attention_mask": np.array([[0, 1, 1], [1, 1, 1]]), "is_causal": True}),
    "cross": ({"n_q": 2, "n_k": 3}, {}),
    "cross-padded": ({"n_q": 2, "n_k": 3}, {"attention_mask": np.array([[True, False, True], [True, True, False]])}),
    "multi-query": ({"heads": 3, "groups": 1}, {}),
    "one-head": ({"heads": 1, "groups": 1, "batch": 1}, {}),
}
every_case = pytest.mark.parametrize(("sizes", "more"), CASES.values(), ids=CASES)


@every_case
def test_by_two_routes(sizes, more):
    arrays, options = inputs(**sizes)
    theirs = route(arrays, **options, **more)
    assert run(arrays, EXACT, **options, **more).tolist() == floats(theirs).tolist()


SLUGS = [e.slug for e in equations() if e.formula is multi_head_attention]


@pytest.mark.parametrize("slug", SLUGS)
def test_sampled_arguments_by_two_routes(slug):
    equation, rng = next(e for e in equations() if e.slug == slug), np.random.default_rng(2)
    for _ in range(3):
        a = equation.sample(rng)
        arrays = {name: x for name, x in a.items() if isinstance(x, np.ndarray)}
        options = {name: x for name, x in a.items() if name not in arrays}
        assert run(arrays, EXACT, **options).tolist() == floats(route(arrays, **options)).tolist()


def test_key_heads_default_to_heads():
    arrays, _ = inputs(heads=2, groups=2)
    assert (run(arrays, num_heads=2) == run(arrays, num_heads=2, num_kv_heads=2)).all()


@every_case
def test_gradients_numerically(sizes, more):
    # Central differences: with h = 2^-90 the error is about 2^-180, far below what rounding to fp64 shows.
    small = {"n_q": 3, "d": 2, "d_k": 1, "d_v": 1, "d_out": 2, "d_c": 2, "heads": 2, "groups": 1} | sizes
    arrays, options = inputs(**small, seed=1)
    y = multi_head_attention(EXACT, **lifted(EXACT, arrays), **options, **more)
    g = np.random.default_rng(9).normal(size=y.shape)
    cotangent, h = EXACT.asarray(g), C.ldexp(1, -90)
    given = lifted(EXACT, arrays)
    gradients = multi_head_attention_vjp(
        EXACT, *(given[n] for n in NAMES), cotangent, **options, **more, context=given.get("context")
    )
    names = [*NAMES, "context"] if "context" in arrays else list(NAMES)
    assert (gradients[5] is None) == ("context" not in arrays)
    for name, gradient in zip(names, gradients, strict=False):
        for place in np.ndindex(*arrays[name].shape):
            sides = []
            for step in (h, -h):
                moved = EXACT.asarray(arrays[name]).value.copy()
                moved[place] += step
                y = multi_head_attention(EXACT, **{**given, name: EXACT.asarray(moved)}, **options, **more)
                sides.append((cotangent.value * y.value).sum())
            assert float((sides[0] - sides[1]) / (2 * h)) == float(gradient.value[place])


def test_a_row_that_sees_nothing_is_zero():
    arrays, options = inputs(n_q=3)
    y = run(arrays, **options, attention_mask=[[0, 0, 0], [1, 1, 1]])
    assert (y[0] == 0).all()
    assert (y[1] != 0).any()


def test_hidden_tokens_play_no_part():
    arrays, options = inputs(n_q=2, n_k=4)
    mask = np.array([[1, 1, 0, 1], [0, 1, 1, 1]])
    other = {**arrays, "context": np.where(mask[:, :, None] == 1, arrays["context"], 1e3)}
    assert (run(arrays, **options, attention_mask=mask) == run(other, **options, attention_mask=mask)).all()


def test_split_and_concat_are_inverse_and_keep_tokens_together():
    x = np.arange(24.0).reshape(1, 3, 8)
    heads = split(XP, XP.asarray(x), 4)
    assert floats(heads)[0, 1].tolist() == [[2, 3], [10, 11], [18, 19]]
    assert (floats(concat(XP, heads)) == x).all()


def test_bounds_hold_and_tell_heads_apart():
    arrays, options = inputs()
    arrays = {name: x.astype(np.float32).astype(np.float64) for name, x in arrays.items()}
    xp = RunningError(FORMATS["fp32"])
    exact, bound = xp.judgeable(multi_head_attention(xp, **lifted(xp, arrays), **options))
    assert (abs(run(arrays, Float(FORMATS["fp32"]), **options) - exact) <= bound).all()
    swapped = {**arrays, "w_q": np.roll(arrays["w_q"], 2, axis=1)}
    assert (abs(run(swapped, **options) - exact) > bound).any()
    assert (abs(run(arrays, num_heads=2, num_kv_heads=1) - exact) > bound).any()


SIZES = {"B": 2, "H": 4, "G": 2, "n_q": 3, "n_k": 5, "d": 6, "d_k": 7, "d_v": 11}


def products(*matrices):
    """Two operations for every term of every entry of every matrix product (rows, inner, columns)."""
    return sum(2 for rows, inner, columns in matrices for _ in product(range(rows), range(inner), range(columns)))


def test_costs_by_counting():
    b, h, g, n_q, n_k, d, d_k, d_v = SIZES.values()
    shapes = ((d, h * d_k), (d, g * d_k), (d, g * d_v), (h * d_v, d))
    assert costs.evaluate(COSTS["parameters"](), **SIZES) == sum(np.zeros(shape).size for shape in shapes)
    rows = (n_q, n_k, n_k, n_q)
    projections = [(n, *shape) for n, shape in zip(rows, shapes, strict=True)]
    attention = [(n_q, d_k, n_k), (n_q, n_k, d_v)] * h
    assert costs.evaluate(COSTS["FLOPs"](), **SIZES) == b * products(*projections, *attention)
    backward = [(n, w[1], w[0]) for n, w in zip(rows, shapes, strict=True)]
    backward += [(w[0], n, w[1]) for n, w in zip(rows, shapes, strict=True)]
    backward += [(n_k, n_q, d_v), (n_q, d_v, n_k), (n_q, n_k, d_k), (n_k, n_q, d_k)] * h
    assert costs.evaluate(COSTS["backward FLOPs"](), **SIZES) == b * products(*backward)
    assert costs.evaluate(COSTS["scores, if written out"](), **SIZES) == b * h * n_q * n_k
    moved = [(b, n_q, d), (b, n_k, d), *shapes, (b, n_q, d)]
    assert costs.evaluate(COSTS["bytes at least"](), **SIZES, w=4) == sum(4 * np.zeros(shape).size for shape in moved)
    kept = [(h, n_q, d_k), (g, n_k, d_k), (g, n_k, d_v), (h, n_q, n_k), (h, n_q, n_k), (h, n_q, d_v)]
    assert costs.evaluate(COSTS["peak extra bytes"](), **SIZES, w=4) == sum(4 * b * np.zeros(s).size for s in kept)


def test_attention_outgrows_the_projections_at_twice_the_width():
    d, at = 64, {"B": 1, "H": 4, "G": 4, "d": 64, "d_k": 16, "d_v": 16}
    whole, part = COSTS["FLOPs"](), COSTS["FLOPs of the projections"]()
    for n, sign in ((2 * d - 1, 1), (2 * d, 0), (2 * d + 1, -1)):
        both = [costs.evaluate(cost, **at, n_q=n, n_k=n) for cost in (part, whole - part)]
        assert np.sign(int(both[0] - both[1])) == sign
