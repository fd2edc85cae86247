"""Layers and their vector-Jacobian products against torch and its autograd, within their bounds."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.layers.dropout import dropout, dropout_vjp
from veriformer.spec.layers.feed_forward import feed_forward, feed_forward_vjp
from veriformer.spec.layers.gelu import gelu, gelu_vjp
from veriformer.spec.layers.mixture_of_experts import mixture_of_experts, mixture_of_experts_vjp, route
from veriformer.spec.layers.mlp import mlp, mlp_vjp
from veriformer.spec.layers.mse_loss import mse_loss, mse_loss_vjp
from veriformer.spec.layers.silu import silu, silu_vjp
from veriformer.spec.layers.swiglu import swiglu, swiglu_vjp

DTYPES = {"fp64": torch.float64, "fp32": torch.float32}
ROUNDED = {name: RunningError(FORMATS[name]) for name in DTYPES}
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
SIGMAS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "gelu": functional.gelu}


def tensors(seed, dtype, *shapes):
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.normal(size=shape), dtype=DTYPES[dtype], requires_grad=True) for shape in shapes]


def lifted(xp, xs):
    return [xp.asarray(x.detach().double().numpy()) for x in xs]


def assert_within(xp, reference, got):
    exact, bound = xp.judgeable(reference)
    assert exact.shape == got.shape
    assert (abs(got.detach().double().numpy() - exact) <= bound).all()
    assert (abs(exact) > bound).any()


def compare(dtype, theirs, ours, vjp, *shapes, given=(), **options):
    """Result and gradients of `theirs`, called on tensors, against the formula and its vector-Jacobian product."""
    xp, xs = ROUNDED[dtype], tensors(0, dtype, *shapes)
    y = theirs(*xs)
    (g,) = tensors(1, dtype, y.shape)
    assert_within(xp, ours(xp, *lifted(xp, xs), *given, **options), y)
    gradients = vjp(xp, *lifted(xp, xs), *given, *lifted(xp, [g]), **options)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for reference, got in zip(gradients, torch.autograd.grad(y, xs, g), strict=True):
        assert_within(xp, reference, got)


TWO_LAYERS = ((2, 3, 5), (5, 7), (7,), (7, 4), (4,))


@every_dtype
@pytest.mark.parametrize("activation", SIGMAS)
def test_mlp(dtype, activation):
    def theirs(x, w1, b1, w2, b2):
        return functional.linear(SIGMAS[activation](functional.linear(x, w1.T, b1)), w2.T, b2)

    compare(dtype, theirs, mlp, mlp_vjp, *TWO_LAYERS, activation=activation)


@every_dtype
def test_feed_forward_with_dropout(dtype):
    keep = np.random.default_rng(2).random((2, 3, 7)) > 0.25

    def theirs(x, w1, b1, w2, b2):
        h = functional.gelu(x @ w1 + b1) * torch.tensor(keep) * (1 / 0.75)
        return h @ w2 + b2

    compare(dtype, theirs, feed_forward, feed_forward_vjp, *TWO_LAYERS, dropout_p=0.25, keep=keep)


@every_dtype
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(dtype, approximate):
    theirs = lambda x: functional.gelu(4 * x, approximate=approximate) / 4  # noqa: E731
    ours = lambda xp, x: gelu(xp, x * 4, approximate=approximate) / 4  # noqa: E731
    compare(dtype, theirs, ours, lambda xp, x, g: gelu_vjp(xp, x * 4, g, approximate=approximate), (40,))


@every_dtype
def test_silu(dtype):
    theirs = lambda x: functional.silu(4 * x) / 4  # noqa: E731
    compare(dtype, theirs, lambda xp, x: silu(xp, x * 4) / 4, lambda xp, x, g: silu_vjp(xp, x * 4, g), (40,))


@every_dtype
def test_swiglu(dtype):
    theirs = lambda x, gate, up, down: (functional.silu(x @ gate) * (x @ up)) @ down  # noqa: E731
    compare(dtype, theirs, swiglu, swiglu_vjp, (2, 3, 5), (5, 7), (5, 7), (7, 4))


@every_dtype
def test_mse(dtype):
    theirs = lambda p, t: functional.mse_loss(p, t, reduction="sum") / 6  # noqa: E731
    compare(dtype, theirs, mse_loss, mse_loss_vjp, (2, 3, 5), (2, 3, 5))


@every_dtype
def test_dropout_by_the_mask_that_torch_drew(dtype):
    torch.manual_seed(0)
    xp = ROUNDED[dtype]
    (x, g), p = tensors(3, dtype, (50,), (50,)), 0.3
    y = functional.dropout(x, p)
    keep = (y != 0).numpy()
    assert 0 < keep.sum() < 50
    assert_within(xp, dropout(xp, *lifted(xp, [x]), p, keep=keep), y)
    (got,) = torch.autograd.grad(y, x, g)
    assert_within(xp, dropout_vjp(xp, *lifted(xp, [x]), p, *lifted(xp, [g]), keep=keep), got)


@every_dtype
def test_mixture_of_experts(dtype):
    shapes = (2, 3, 5), (5, 4), (4, 5, 7), (4, 7), (4, 7, 2), (4, 2)
    x, router, *_ = lifted(ROUNDED[dtype], tensors(0, dtype, *shapes))
    chosen, sure = route(ROUNDED[dtype], x, router, 2)
    assert sure.all()
    assert len({tuple(row) for row in chosen.reshape(-1, 4)}) > 1

    def theirs(x, router, w1, b1, w2, b2):
        scores, best = (x @ router).topk(2, dim=-1)
        gates = scores.softmax(-1)
        said = torch.stack([functional.gelu(x @ w1[e] + b1[e]) @ w2[e] + b2[e] for e in range(4)], dim=-2)
        return (gates[..., None] * said.take_along_dim(best[..., None], dim=-2)).sum(-2)

    compare(dtype, theirs, mixture_of_experts, mixture_of_experts_vjp, *shapes)
