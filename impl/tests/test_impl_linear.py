"""The linear map is that of the formula, in every layout, forward and backward."""

import pytest
import torch

from tests.derived_bounds import U, gamma, judge, random
from veriformer.impl.linear import PackedMatrix, linear


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


@pytest.mark.skipif(not PackedMatrix.takes(torch.empty(0)), reason="PyTorch has no oneDNN here")
@pytest.mark.parametrize("rows", [(1,), (7,), (3, 1), (2, 40)], ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_a_packed_matrix_gives_the_same_product(rows, biased):
    x, W, b = random(*rows, 33).float(), random(33, 50).float(), random(50).float() if biased else None
    exact, size = linear(x.double(), W.double()), linear(x.double().abs(), W.double().abs())
    if b is not None:
        exact, size = exact + b.double(), size + b.double().abs()
    judge(linear(x, PackedMatrix.of(W), b), exact, gamma(35, U[torch.float32]) * size)


def test_what_is_packed():
    W = torch.empty(0)
    assert not any(PackedMatrix.takes(x) for x in (W.double(), W.bfloat16(), W.to("meta")))
