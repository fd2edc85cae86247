"""Layers: exact cases, ranges in half precision, chance by seed, refusals that name the argument."""

import math

import pytest
import torch

from tests.derived_bounds import DTYPES, after_rounding, dtypes, gamma, judge, random, working_roundoff
from veriformer.impl import (
    dropout,
    feed_forward,
    gelu,
    lm_head,
    mixture_of_experts,
    mlp,
    mse_loss,
    residual,
    silu,
    swiglu,
    token_embedding,
    xavier_normal,
)

HALF = torch.float16


def network(d=3, f=5, o=2, dtype=torch.float64):
    return [random(*shape, dtype=dtype, seed=i) for i, shape in enumerate(((d, f), (f,), (f, o), (o,)))]


def experts(e=4, d=3, h=5, o=2):
    shapes = (d, e), (e, d, h), (e, h), (e, h, o), (e, o)
    return [random(*shape, seed=i) for i, shape in enumerate(shapes)]


@dtypes
def test_gelu_and_silu_split_a_number_between_the_two_sides(dtype):
    x, u = random(40, dtype=dtype) * 3, working_roundoff(dtype)
    for f in (gelu, lambda t: gelu(t, approximate="tanh"), silu):
        exact = x.double()
        judge(f(x).double() - f(-x).double(), exact, 2 * after_rounding(exact, gamma(16, u) * exact.abs(), dtype))


@dtypes
def test_activations_far_from_zero_have_finite_gradients(dtype):
    x = torch.tensor([-30000.0, 30000.0], dtype=dtype, requires_grad=True)
    for f in (gelu, lambda t: gelu(t, approximate="tanh"), silu):
        y = f(x)
        (g,) = torch.autograd.grad(y, x, torch.full_like(x, 2))
        assert y.tolist() == [0.0, 30000.0] or (dtype == torch.bfloat16 and y[0] == 0)
        assert g.tolist() == [0.0, 2.0]


def test_the_squared_error_counts_vectors_and_leaves_targets_alone():
    prediction, target = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    assert mse_loss(prediction, target) == (5 + 1) / 2
    assert mse_loss(prediction[0], target[0]) == 5
    prediction.requires_grad_()
    target.requires_grad_()
    loss = mse_loss(prediction, target)
    gradients = torch.autograd.grad(loss, (prediction, target), allow_unused=True)
    assert gradients[0].tolist() == [[1.0, 2.0], [0.0, 1.0]]
    assert gradients[1] is None


def test_sums_that_leave_the_range_of_halves_come_back():
    assert mse_loss(torch.full((10, 1), 200.0, dtype=HALF), torch.zeros(10, 1, dtype=HALF)) == 40000
    assert residual(torch.tensor([-60000.0], dtype=HALF), torch.tensor([60000.0], dtype=HALF), scale=2.0) == 60000
    h, w = torch.tensor([300.0, 300.0, 1.0], dtype=HALF), torch.tensor([[300.0, -300.0, 2.0]], dtype=HALF)
    assert lm_head(h, w).tolist() == [2.0]
    big, small = torch.tensor([[512.0]], dtype=HALF), torch.tensor([[2.0**-8]], dtype=HALF)
    zero = torch.zeros(1, dtype=HALF)
    for f in (mlp, feed_forward):
        assert f(big, big, zero, small, zero) == 1024
    assert swiglu(big, torch.ones_like(big), big, small).isinf()  # 2^19 is beyond fp16 itself
    assert swiglu(big, torch.ones_like(big), big, small / 64).item() == 2**13


def test_repeated_tokens_add_up_beyond_the_range_of_halves():
    weight = torch.zeros(3, 2, dtype=HALF, requires_grad=True)
    y = token_embedding(torch.tensor([1, 1, 1, 1], dtype=torch.uint8), weight)
    y.backward(torch.tensor([[6e4, 1], [6e4, 1], [-6e4, 1], [-6e4, 2]], dtype=HALF))
    assert weight.grad.tolist() == [[0, 0], [0, 5], [0, 0]]


def test_hidden_units_have_no_order():
    x, (w1, b1, w2, b2) = random(4, 3), network()
    order = torch.tensor([3, 0, 4, 1, 2])
    for f in (mlp, feed_forward):
        y, moved = f(x, w1, b1, w2, b2), f(x, w1[:, order], b1[order], w2[order], b2)
        size = random(4, 3).abs() @ w1.abs() @ w2.abs() + b1.abs() @ w2.abs() + b2.abs()
        judge(moved, y, gamma(40, 2.0**-53) * size)


def test_dropout_of_hidden_values_spares_the_outer_bias():
    x, (w1, b1, w2, b2) = random(4, 3), network()
    assert torch.equal(feed_forward(x, w1, b1, w2, b2, dropout_p=1.0, training=True), b2.expand(4, -1))
    assert torch.equal(feed_forward(x, w1, b1, w2, b2, dropout_p=0.5), feed_forward(x, w1, b1, w2, b2))


def test_dropout_keeps_its_mask_in_backward_and_in_every_dtype():
    masks = []
    for dtype in DTYPES:
        x = torch.ones(50, 3, dtype=dtype, requires_grad=True)
        y = dropout(x, 0.5, generator=torch.Generator().manual_seed(4))
        (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
        assert torch.equal(y, g)
        assert set(y.flatten().tolist()) == {0.0, 2.0}
        masks.append((y > 0).tolist())
    assert all(mask == masks[0] for mask in masks)


def test_experts_that_nobody_chose_get_no_gradient_and_ties_go_to_the_lower():
    x, (router, *weights) = random(5, 3), experts()
    w1 = weights[0].requires_grad_()
    y = mixture_of_experts(x, torch.zeros_like(router), *weights, top_k=2)
    (g,) = torch.autograd.grad(y.sum(), w1)
    assert [bool(e.any()) for e in g] == [True, True, False, False]


def test_all_experts_asked_is_the_dense_mixture():
    x, (router, w1, b1, w2, b2) = random(5, 3), experts()
    gates = torch.softmax(x @ router, -1)
    answers = torch.stack([feed_forward(x, w1[e], b1[e], w2[e], b2[e]) for e in range(4)], 1)
    exact = (gates[..., None] * answers).sum(1)
    size = 40 + (gates[..., None] * answers.abs()).sum(1)
    judge(mixture_of_experts(x, router, w1, b1, w2, b2, top_k=4), exact, gamma(60, 2.0**-53) * size)
    assert mixture_of_experts(x[:0], router, w1, b1, w2, b2).shape == (0, 2)


def test_first_weights_have_xavier_s_deviation():
    n_in, n_out = 200, 700
    w = xavier_normal(n_in, n_out, generator=torch.Generator().manual_seed(0)).double()
    # Six deviations of the mean square of n normal numbers, each √(2 / n).
    n = w.numel()
    assert abs(w.square().mean() * (n_in + n_out) / 2 - 1) < 6 * math.sqrt(2 / n)
    assert w.dtype == torch.float64
    assert xavier_normal(3, 4).dtype == torch.get_default_dtype()


X, (W1, B1, W2, B2) = random(4, 3), network()
IDS, TABLE = torch.tensor([0, 2]), random(3, 2)
BAD = {
    "approximate": lambda: gelu(X, approximate="erf"),
    "target": lambda: mse_loss(X, X[:1]),
    "prediction": lambda: mse_loss(X[:0], X[:0]),
    "fx": lambda: residual(X, X[0]),
    "scale": lambda: residual(X, X, scale=math.inf),
    "p": lambda: dropout(X, 1.5, training=False),
    "generator": lambda: dropout(X, 0.5, generator=3),
    "activation": lambda: mlp(X, W1, B1, W2, B2, activation="swish"),
    "b1": lambda: mlp(X, W1, B1[:1], W2, B2),
    "w2": lambda: feed_forward(X, W1, B1, W2[1:], B2),
    "dropout_p": lambda: feed_forward(X, W1, B1, W2, B2, dropout_p=-1),
    "w_up": lambda: swiglu(X, W1, W1[:, 1:], W2),
    "top_k": lambda: mixture_of_experts(X, *experts(), top_k=5),
    "ids": lambda: token_embedding(IDS - 1, TABLE),
    "weight": lambda: lm_head(X, TABLE),
    "n_in": lambda: xavier_normal(-1, 2),
    "x": lambda: silu(None),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_is_named(name):
    with pytest.raises((ValueError, TypeError), match=rf"^{name}: expected .*, got .*; "):
        BAD[name]()
