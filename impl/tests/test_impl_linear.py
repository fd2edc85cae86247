"""The linear map is that of the formula, in every layout, forward and backward."""

import pytest
import torch

from tests.derived_bounds import after_rounding, forward_and_backward, gamma, judge, random
from veriformer.impl.linear import linear

U = 2.0**-24


@pytest.mark.parametrize("rows", [(1,), (7,), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_linear_forward_and_backward(rows, turned, biased):
    x, W, b = random(*rows, 11), random(11, 13), random(13)
    x, W, b = (t.float().double() for t in (x, W, b))  # exact in both dtypes
    g = random(*rows, 13).float().double()

    def function(x, W, b):
        return linear(x, W.mT.contiguous().mT if turned else W, b if biased else None) + 0 * b.sum()

    got = forward_and_backward(function, x.float(), W.float(), b.float(), g=g.float())
    n = x[..., 0].numel()
    flat, cot = x.reshape(n, 11), g.reshape(n, 13)
    exact = (x @ W + biased * b, g @ W.mT, flat.mT @ cot, biased * cot.sum(0))
    size = (x.abs() @ W.abs() + b.abs(), g.abs() @ W.abs().mT, flat.abs().mT @ cot.abs(), cot.abs().sum(0))
    for have, want, scale in zip(got, exact, size, strict=True):
        assert have.dtype == torch.float32
        judge(have, want, after_rounding(want, gamma(20, U) * scale, torch.float32))


def test_a_bias_of_any_stride():
    x, W, b = random(3, 4).float(), random(4, 5).float(), random(5).float()
    apart = torch.stack([b, b * torch.nan], -1)[:, 0]
    assert torch.equal(linear(x, W, apart), linear(x, W, b))


def test_empty_products_and_such_without_numbers_have_their_shapes():
    x, W = torch.ones(2, 3), torch.ones(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, W).dtype == torch.bfloat16
    assert linear(x[:0], W).shape == (0, 4)
    assert linear(x, W[:, :0]).shape == (2, 0)
    assert linear(x.to("meta"), W.to("meta")).shape == (2, 4)


def test_a_second_derivative_is_that_of_the_formula():
    x, W = torch.tensor([[1.0, -2.0]], requires_grad=True), torch.tensor([[3.0, 1.0, 4.0], [1.0, -5.0, 9.0]])
    dx = torch.autograd.grad(linear(x, W).square().sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(dx.sum(), x)[0]
    assert torch.equal(dx, 2 * x @ W @ W.mT)
    assert torch.equal(second, 2 * torch.ones(1, 2) @ W @ W.mT)
