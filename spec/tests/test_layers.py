"""Layers by a second route, their gradients numerically, at their edges, and their costs by counting."""

import numpy as np
import pytest

from veriformer.spec import costs
from veriformer.spec.arithmetic import FORMATS, Exact, Float, RunningError
from veriformer.spec.arithmetic.constants import pi
from veriformer.spec.layers.activations import ACTIVATIONS, activate
from veriformer.spec.layers.costs_layers import EXPERTS, GATED, LAYER, NETWORK
from veriformer.spec.layers.dropout import dropout
from veriformer.spec.layers.feed_forward import feed_forward
from veriformer.spec.layers.gelu import gelu
from veriformer.spec.layers.mixture_of_experts import mixture_of_experts, route
from veriformer.spec.layers.mlp import mlp, mlp_vjp
from veriformer.spec.layers.mse_loss import mse_loss
from veriformer.spec.layers.residual import residual, residual_vjp
from veriformer.spec.layers.smooth_labels import smooth_labels
from veriformer.spec.proofs.tower_arithmetic import entries
from veriformer.spec.registry import equations
from veriformer.spec.scores.cross_entropy import cross_entropy

# Two computations with 300 bits agree when they are rounded to fp64.
EXACT = Exact(300)
C = EXACT.context
LAYERS = {
    e.slug: e for e in equations() if e.formula and e.steps[0].identity.__module__.startswith("veriformer.spec.layers.")
}


def floats(x):
    return [float(e) for e in entries(x)]


def lifted(xp, x):
    return xp.asarray(x) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x


def mp(x):
    return EXACT.asarray(x).value


def sigma(name, z):
    if name == "relu":
        return z if z > 0 else C.mpf(0)
    if name == "sigmoid":
        return C.exp(z) / (1 + C.exp(z))
    if name == "tanh":
        return (C.exp(2 * z) - 1) / (C.exp(2 * z) + 1)
    return z * C.erfc(-z / C.sqrt(2)) / 2


def layer(x, w, b):
    return np.array([[C.fsum([*(x * column), c]) for column, c in zip(w.T, b, strict=True)] for x in x])


def network(a, name=None, keep=None, p=0.0):
    x = mp(a["x"])
    rows = layer(x.reshape(-1, x.shape[-1]), mp(a["w1"]), mp(a["b1"]))
    h = np.array([[sigma(name or a["activation"], z) for z in row] for row in rows])
    if keep is not None:
        h = np.array(
            [
                [e / (1 - C.mpf(p)) if k else C.mpf(0) for e, k in zip(*r, strict=True)]
                for r in zip(h, keep.reshape(h.shape), strict=True)
            ]
        )
    return layer(h, mp(a["w2"]), mp(a["b2"])).ravel()


def gelu_route(a):
    if a.get("approximate") == "tanh":
        return [x / (1 + C.exp(-2 * C.sqrt(2 / C.pi) * (x + C.mpf(44715) / 10**6 * x**3))) for x in mp(a["x"]).ravel()]
    return [sigma("gelu", x) for x in mp(a["x"]).ravel()]


def mse_route(a):
    rows = (mp(a["prediction"]) - mp(a["target"])).reshape(-1, a["target"].shape[-1])
    return [C.fsum(C.norm(list(row)) ** 2 for row in rows) / len(rows)]


def swiglu_route(a):
    x = mp(a["x"]).reshape(-1, a["x"].shape[-1])
    gate, up = x @ mp(a["w_gate"]), x @ mp(a["w_up"])
    return (np.array([[z * sigma("sigmoid", z) for z in row] for row in gate]) * up @ mp(a["w_down"])).ravel()


def experts_route(a):
    out = []
    for x in mp(a["x"]).reshape(-1, a["x"].shape[-1]):
        scores = list(x @ mp(a["router"]))
        asked = sorted(range(len(scores)), key=lambda e: (-scores[e], e))[: a["top_k"]]
        total = C.fsum(C.exp(scores[e]) for e in asked)
        said = [network({"x": x[None], **{n: a[n][e] for n in ("w1", "b1", "w2", "b2")}}, "gelu") for e in asked]
        out += list(sum(C.exp(scores[e]) / total * y for e, y in zip(asked, said, strict=True)))
    return out


def dropout_route(a):
    return [
        x / (1 - C.mpf(a["p"])) if k else C.mpf(0) for x, k in zip(mp(a["x"]).ravel(), a["keep"].ravel(), strict=True)
    ]


def smoothing_route(a):
    v, alpha = a["num_classes"], C.mpf(a["alpha"])
    return [alpha / v + (1 - alpha if k == t else 0) for t in a["target"].ravel() for k in range(v)]


def gpt2_route(a):
    d = a["d"]
    block = [(d, 3 * d), (3 * d,), (d, d), (d,), (d, 4 * d), (4 * d,), (4 * d, d), (d,), (d,), (d,), (d,), (d,)]
    shapes = [(a["vocabulary"], d), (a["positions"], d), (d,), (d,)] + block * a["layers"]
    return [sum(int(np.prod(shape)) for shape in shapes)]


def feed_forward_weights_route(a):
    shapes = [(a["d"], a["d_ffn"]), (a["d_ffn"], a["d"])] + [(a["d_ffn"],), (a["d"],)] * a["biases"]
    return [sum(int(np.prod(shape)) for shape in shapes)]


def layer_norm_route(a):
    out = []
    for row in mp(a["x"]).reshape(-1, a["x"].shape[-1]):
        d, mean = len(row), C.fsum(row) / len(row)
        root = C.sqrt(C.fsum(x * x for x in row) / d - mean**2 + C.mpf(a["eps"]))
        out += [w * (x - mean) / root + b for x, w, b in zip(row, mp(a["weight"]), mp(a["bias"]), strict=True)]
    return out


def rms_norm_route(a):
    out = []
    for row in mp(a["x"]).reshape(-1, a["x"].shape[-1]):
        root = C.norm([*row, C.sqrt(C.mpf(a["eps"]) * len(row))]) / C.sqrt(len(row))
        out += [w * x / root for x, w in zip(row, mp(a["weight"]), strict=True)]
    return out


ROUTES = {
    "layer-norm": layer_norm_route,
    "rms-norm": rms_norm_route,
    "mlp-first-layer": lambda a: layer(mp(a["x"]).reshape(-1, a["x"].shape[-1]), mp(a["w"]), mp(a["b"])).ravel(),
    "activation": lambda a: [sigma(a["activation"], z) for z in mp(a["z"]).ravel()],
    "mlp": network,
    "mlp-output-gradient": network,
    "mlp-output-weights": network,
    "mlp-hidden-weights": network,
    "hidden-layer-backward": network,
    "feed-forward": network,
    "feed-forward-dropout": lambda a: network(a, keep=a["keep"], p=a["dropout_p"]),
    "feed-forward-weights": feed_forward_weights_route,
    "gpt2-weights": gpt2_route,
    "gelu": gelu_route,
    "gelu-tanh": gelu_route,
    "silu": lambda a: [x * sigma("sigmoid", x) for x in mp(a["x"]).ravel()],
    "swiglu": swiglu_route,
    "mixture-of-experts": experts_route,
    "mse": mse_route,
    "dropout": dropout_route,
    "label-smoothing": smoothing_route,
    "xavier": lambda a: [1 / ((C.mpf(a["n_in"]) + a["n_out"]) / 2)],
}


def test_every_formula_has_a_second_route():
    assert set(ROUTES) == set(LAYERS)


@pytest.mark.parametrize("slug", ROUTES)
def test_by_two_routes(slug):
    rng = np.random.default_rng(5)
    for _ in range(4):
        a = LAYERS[slug].sample(rng)
        ours = LAYERS[slug].formula(EXACT, **{name: lifted(EXACT, x) for name, x in a.items()})
        assert floats(ours) == [float(e) for e in ROUTES[slug](a)]


DIFFERENTIABLE = [slug for slug, e in LAYERS.items() if e.vjp is not None]


def test_what_can_be_differentiated_is():
    constant = {"feed-forward-weights", "gpt2-weights", "label-smoothing", "xavier"}
    assert set(DIFFERENTIABLE) == set(LAYERS) - constant


@pytest.mark.parametrize("slug", DIFFERENTIABLE)
def test_gradients_numerically(slug):
    # Central differences: with h = 2^-90 the error is about 2^-180, far below what rounding to fp64 shows.
    equation, rng, h = LAYERS[slug], np.random.default_rng(11), C.ldexp(1, -90)
    for _ in range(2):
        a = {name: lifted(EXACT, x) for name, x in equation.sample(rng).items()}
        y = equation.formula(EXACT, **a)
        g = EXACT.asarray(rng.normal(size=y.shape))
        gradients = equation.vjp(EXACT, **a, g=g)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        names = [name for name, x in a.items() if type(x) is type(y)]
        assert len(names) == len(gradients)
        for name, gradient in zip(names, gradients, strict=True):
            assert gradient.shape == a[name].shape
            for place in [tuple(rng.integers(0, n) for n in gradient.shape) for _ in range(6)]:
                sides = []
                for step in (h, -h):
                    moved = a[name].value.copy()
                    moved[place] += step
                    y = equation.formula(EXACT, **{**a, name: EXACT.asarray(moved)})
                    sides.append(np.sum(g.value * y.value))
                assert float((sides[0] - sides[1]) / (2 * h)) == float(gradient.value[place])


def test_pi_is_pi():
    assert pi(EXACT).value[()] == +C.pi


def test_a_rank_one_prediction_is_one_sample():
    x, zero = EXACT.asarray([1.0, 2.0, 2.0]), EXACT.asarray([0.0, 0.0, 0.0])
    assert floats(mse_loss(EXACT, x, zero)) == [9.0]
    rows = (EXACT.asarray(np.array([[1.0], [2.0], [2.0]])), EXACT.asarray(np.zeros((3, 1))))
    assert floats(mse_loss(EXACT, *rows)) == [3.0]


def test_dropout_at_its_edges():
    xp = Float()
    x = xp.asarray([1.0, -2.0])
    assert floats(dropout(xp, x, 1.0, keep=np.array([False, False]))) == [0, 0]
    assert floats(dropout(xp, x, 0.5)) == [1, -2]
    assert floats(dropout(xp, x, 0.0, keep=np.array([True, True]))) == [1, -2]
    assert floats(dropout(xp, xp.asarray([np.nan, 3.0]), 0.5, keep=np.array([False, True]))) == [0, 6]


def test_without_dropout_a_feed_forward_network_is_an_mlp():
    rng = np.random.default_rng(3)
    a = {name: lifted(EXACT, x) for name, x in LAYERS["mlp"].sample(rng).items()}
    keep = np.ones((2, 3, a["w1"].shape[1]), dtype=bool)
    assert floats(feed_forward(EXACT, **a, keep=keep, dropout_p=0.0)) == floats(mlp(EXACT, **a))


def test_smoothing_at_its_edges():
    assert floats(smooth_labels(EXACT, np.array([1]), 3, 0.0)) == [0, 1, 0]
    assert floats(smooth_labels(EXACT, np.array([1]), 4, 1.0)) == [0.25] * 4
    assert smooth_labels(EXACT, np.zeros((2, 0), dtype=int), 5, 0.5).shape == (2, 0, 5)
    assert smooth_labels(EXACT, np.array(2), 5, 0.5).shape == (5,)


def test_smoothed_targets_give_the_smoothed_loss():
    rng = np.random.default_rng(4)
    z, target = EXACT.asarray(rng.normal(size=(3, 4))), np.array([3, 0, 1])
    soft = cross_entropy(EXACT, z, smooth_labels(EXACT, target, 4, 0.25))
    assert floats(soft) == floats(cross_entropy(EXACT, z, target, label_smoothing=0.25))


def experts(rng, n, d, e):
    shapes = {"x": (n, d), "router": (d, e), "w1": (e, d, 2), "b1": (e, 2), "w2": (e, 2, 3), "b2": (e, 3)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def test_ties_go_to_the_lower_expert_and_are_told():
    xp = RunningError(FORMATS["fp32"])
    router = xp.asarray([[1.0, 2.0, 2.0, 2.0]])
    chosen, sure = route(xp, xp.asarray([[1.0]]), router, 2)
    assert chosen.tolist() == [[False, True, True, False]]
    assert not sure[0]
    assert route(xp, xp.asarray([[1.0]]), xp.asarray([[1.0, 2.0, 3.0, 0.0]]), 2)[1][0]
    assert route(xp, xp.asarray([[1.0]]), router, 4)[1][0]


def test_experts_that_are_not_asked_play_no_part():
    rng, xp = np.random.default_rng(8), Float()
    a = experts(rng, 1, 3, 4)
    (asked,), _ = route(xp, xp.asarray(a["x"]), xp.asarray(a["router"]), 2)
    y = mixture_of_experts(xp, *(xp.asarray(x) for x in a.values()), top_k=2)
    a["b2"][~asked] = 1e6
    assert floats(mixture_of_experts(xp, *(xp.asarray(x) for x in a.values()), top_k=2)) == floats(y)
    a["b2"][asked] = 1e6
    assert floats(mixture_of_experts(xp, *(xp.asarray(x) for x in a.values()), top_k=2)) != floats(y)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_far_out(name):
    xp = Float()
    far = floats(activate(xp, xp.asarray([-700.0, 700.0]), name))
    assert far[0] == (-1 if name == "tanh" else 0) or 0 < far[0] < 1e-300
    assert far[1] == (1 if name in ("tanh", "sigmoid") else 700)


def test_the_slope_of_relu_is_known_where_its_sign_is():
    xp = RunningError(FORMATS["fp32"])
    one, zero = xp.asarray([[1.0]]), xp.asarray([0.0])
    x = xp.asarray([[3.0], [-3.0], [0.0]])
    dx, *_ = mlp_vjp(xp, x, one, zero, one, zero, xp.asarray([[1.0], [1.0], [1.0]]))
    value, bound = xp.judgeable(dx)
    assert value.ravel().tolist() == [1, 0, 0]
    assert (bound[:2] < 1e-5).all()
    assert np.isinf(bound[2]).all()


def test_bounds_hold_and_tell_the_forms_of_gelu_apart():
    xp = RunningError(FORMATS["fp32"])
    x = np.linspace(-6, 6, 101).astype(np.float32).astype(np.float64)
    value, bound = xp.judgeable(gelu(xp, xp.asarray(x)))
    plain = Float(FORMATS["fp32"])
    assert (abs(floats(gelu(plain, plain.asarray(x))) - value) <= bound).all()
    other = floats(gelu(plain, plain.asarray(x), approximate="tanh"))
    assert (abs(other - value) > bound).sum() > 50
    assert abs(other - value).max() < 0.000474


SIZES = {"N": 5, "d": 3, "f": 7, "o": 2, "E": 4, "k": 2, "w": 4}


def products(*matrices):
    return sum(2 * rows * inner * columns for rows, inner, columns in matrices)


def test_costs_by_counting():
    n, d, f, o, e, k, w = SIZES.values()
    two, three = [(n, d, f), (n, f, o)], [(n, d, f), (n, d, f), (n, f, o)]
    weights = {"one": d * f + f, "two": d * f + f + f * o + o, "three": 2 * d * f + f * o}
    for cost, flops, parameters in (
        (LAYER, products((n, d, f)), weights["one"]),
        (NETWORK, products(*two), weights["two"]),
        (GATED, products(*three), weights["three"]),
        (EXPERTS, products((n, d, e), *(two * k)), d * e + e * weights["two"]),
    ):
        assert costs.evaluate(cost["FLOPs"](), **SIZES) == flops
        assert costs.evaluate(cost["backward FLOPs"](), **SIZES) == 2 * flops
        assert costs.evaluate(cost["parameters"](), **SIZES) == parameters
    assert costs.evaluate(NETWORK["bytes at least"](), **SIZES) == w * (n * d + n * o + weights["two"])
    assert costs.evaluate(NETWORK["peak extra bytes"](), **SIZES) == w * 2 * n * f


@pytest.mark.parametrize("scale", [1.0, 2.0, 0.5, 0.0, -3.0])
def test_a_branch_is_added_at_every_scale(scale):
    x, fx, g = (EXACT.asarray(np.array(values)) for values in ([1.0, -2.0], [3.0, 0.25], [0.5, 4.0]))
    assert floats(residual(EXACT, x, fx, scale=scale)) == [1.0 + 3.0 * scale, -2.0 + 0.25 * scale]
    assert [floats(part) for part in residual_vjp(EXACT, x, fx, g, scale=scale)] == [
        [0.5, 4.0],
        [0.5 * scale, 4 * scale],
    ]
