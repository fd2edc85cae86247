"""Layers at their edges, and what their bounds tell apart."""

import numpy as np
import pytest
import torch

from tests.values import EXACT, flat
from veriformer.spec.arithmetic import FORMATS, Float, RunningError
from veriformer.spec.arithmetic.constants import pi
from veriformer.spec.layers.activations import ACTIVATIONS, activate
from veriformer.spec.layers.dropout import dropout
from veriformer.spec.layers.gelu import gelu
from veriformer.spec.layers.mixture_of_experts import mixture_of_experts, mixture_of_experts_vjp, route
from veriformer.spec.layers.mlp import mlp_vjp
from veriformer.spec.layers.mse_loss import mse_loss
from veriformer.spec.layers.residual import residual, residual_vjp
from veriformer.spec.layers.smooth_labels import smooth_labels
from veriformer.spec.registry import equations

C = EXACT.context
LAYERS = {
    e.slug: e for e in equations() if e.formula and e.steps[0].identity.__module__.startswith("veriformer.spec.layers.")
}


DIFFERENTIABLE = [slug for slug, e in LAYERS.items() if e.vjp is not None]


def test_what_can_be_differentiated_is():
    constant = {"feed-forward-weights", "gpt2-weights", "label-smoothing", "xavier"}
    assert set(DIFFERENTIABLE) == set(LAYERS) - constant


def test_pi_is_pi():
    assert pi(EXACT).value[()] == +C.pi


def test_a_rank_one_prediction_is_one_sample():
    x, zero = EXACT.asarray([1.0, 2.0, 2.0]), EXACT.asarray([0.0, 0.0, 0.0])
    assert flat(mse_loss(EXACT, x, zero)) == [9.0]
    rows = (EXACT.asarray(np.array([[1.0], [2.0], [2.0]])), EXACT.asarray(np.zeros((3, 1))))
    assert flat(mse_loss(EXACT, *rows)) == [3.0]


def test_dropout_at_its_edges():
    xp = Float()
    x = xp.asarray([1.0, -2.0])
    assert flat(dropout(xp, x, 1.0, keep=np.array([False, False]))) == [0, 0]
    assert flat(dropout(xp, x, 0.5)) == [1, -2]
    assert flat(dropout(xp, x, 0.0, keep=np.array([True, True]))) == [1, -2]
    assert flat(dropout(xp, xp.asarray([np.nan, 3.0]), 0.5, keep=np.array([False, True]))) == [0, 6]


def test_smoothing_at_its_edges():
    assert flat(smooth_labels(EXACT, np.array([1]), 3, 0.0)) == [0, 1, 0]
    assert flat(smooth_labels(EXACT, np.array([1]), 4, 1.0)) == [0.25] * 4
    assert smooth_labels(EXACT, np.zeros((2, 0), dtype=int), 5, 0.5).shape == (2, 0, 5)
    assert smooth_labels(EXACT, np.array(2), 5, 0.5).shape == (5,)


def experts(rng, n, d, e):
    shapes = {"x": (n, d), "router": (d, e), "w1": (e, d, 2), "b1": (e, 2), "w2": (e, 2, 3), "b2": (e, 3)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def test_a_mixture_and_its_gradients_are_those_of_torch():
    """Its vector-Jacobian product is proved for small sizes alone."""
    xp, rng = RunningError(FORMATS["fp64"]), np.random.default_rng(0)
    shapes = (2, 3, 5), (5, 4), (4, 5, 7), (4, 7), (4, 7, 2), (4, 2)
    x, router, w1, b1, w2, b2 = xs = [torch.tensor(rng.normal(size=s), requires_grad=True) for s in shapes]
    scores, best = (x @ router).topk(2, dim=-1)
    said = [torch.nn.functional.gelu(x @ w1[e] + b1[e]) @ w2[e] + b2[e] for e in range(4)]
    y = (scores.softmax(-1)[..., None] * torch.stack(said, dim=-2).take_along_dim(best[..., None], dim=-2)).sum(-2)
    g = torch.tensor(rng.normal(size=y.shape))
    ours = [xp.asarray(t.detach().numpy()) for t in (*xs, g)]
    found = mixture_of_experts(xp, *ours[:-1]), *mixture_of_experts_vjp(xp, *ours)
    for reference, got in zip(found, (y, *torch.autograd.grad(y, xs, g)), strict=True):
        exact, bound = xp.judgeable(reference)
        assert (abs(got.detach().numpy() - exact) <= bound).all()
        assert (abs(exact) > bound).any()


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
    assert flat(mixture_of_experts(xp, *(xp.asarray(x) for x in a.values()), top_k=2)) == flat(y)
    a["b2"][asked] = 1e6
    assert flat(mixture_of_experts(xp, *(xp.asarray(x) for x in a.values()), top_k=2)) != flat(y)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_far_out(name):
    xp = Float()
    far = flat(activate(xp, xp.asarray([-700.0, 700.0]), name))
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
    assert (abs(flat(gelu(plain, plain.asarray(x))) - value) <= bound).all()
    other = flat(gelu(plain, plain.asarray(x), approximate="tanh"))
    assert (abs(other - value) > bound).sum() > 50
    assert abs(other - value).max() < 0.000474


@pytest.mark.parametrize("scale", [1.0, 2.0, 0.5, 0.0, -3.0])
def test_a_branch_is_added_at_every_scale(scale):
    x, fx, g = (EXACT.asarray(np.array(values)) for values in ([1.0, -2.0], [3.0, 0.25], [0.5, 4.0]))
    assert flat(residual(EXACT, x, fx, scale=scale)) == [1.0 + 3.0 * scale, -2.0 + 0.25 * scale]
    assert [flat(part) for part in residual_vjp(EXACT, x, fx, g, scale=scale)] == [
        [0.5, 4.0],
        [0.5 * scale, 4 * scale],
    ]
