"""Softmax and log-sum-exp: values, gradients, exact cases, extreme scores."""

import pytest
import torch

from tests.derived_bounds import after_rounding, dtypes, forward_and_backward, gamma, judge, random, working_roundoff
from veriformer.impl import logsumexp, softmax

SCORES = {
    "ordinary": random(3, 7),
    "one": random(3, 1),
    "peaked": random(3, 7) * 50,
    "large": random(3, 7) * 100 + 3e4,
    "far apart": torch.tensor([[0.0, -3e4, 3e4], [-6e4, -6e4, -6e4], [6e4, 6e4, -6e4]]).double(),
    "with −∞": random(3, 7).masked_fill(random(3, 7, seed=1) > 0.3, -torch.inf).index_fill(1, torch.tensor([2]), 0.5),
}
scores = pytest.mark.parametrize("z", SCORES.values(), ids=SCORES)


def weights(z, u):
    """Return softmax over the last axis, and a bound on the relative error of each weight."""
    shifted = z - z.amax(-1, keepdim=True)
    p = shifted.exp() / shifted.exp().sum(-1, keepdim=True)
    δ = u * shifted.abs().masked_fill(shifted == -torch.inf, 0)
    return p, torch.expm1(δ + (p * torch.expm1(δ)).sum(-1, keepdim=True)) + gamma(z.shape[-1] + 16, u)


@dtypes
@scores
def test_softmax(z, dtype):
    z, g, u = z.to(dtype), random(*z.shape, dtype=dtype, seed=2), working_roundoff(dtype)
    p, ε = weights(z.double(), u)
    got, dz = forward_and_backward(softmax, z, g=g)
    assert got.dtype == dz.dtype == dtype
    judge(got, p, after_rounding(p, p * ε, dtype))
    g = g.double()
    mean, size = ((p * x).sum(-1, keepdim=True) for x in (g, g.abs()))
    spread = (p * ε * g.abs()).sum(-1, keepdim=True)
    bound = p * (ε * (g - mean).abs() + spread + gamma(z.shape[-1] + 8, u) * (g.abs() + size) * (1 + ε))
    exact = p * (g - mean)
    judge(dz, exact, after_rounding(exact, bound, dtype))


@dtypes
@scores
def test_logsumexp(z, dtype):
    z, g, u = z.to(dtype), random(3, dtype=dtype, seed=2), working_roundoff(dtype)
    p, ε = weights(z.double(), u)
    exact = z.double().logsumexp(-1)
    log = (exact - z.double().amax(-1)).abs()
    got, dz = forward_and_backward(logsumexp, z, g=g)
    assert got.dtype == dz.dtype == dtype
    judge(got, exact, after_rounding(exact, ε.amax(-1) + 4 * u * log + u * exact.abs(), dtype))
    exact = p * g.double()[:, None]
    judge(dz, exact, after_rounding(exact, exact.abs() * (ε + gamma(4, u)), dtype))


@dtypes
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("function", [softmax, logsumexp])
def test_any_axis_of_any_layout(function, dim, dtype):
    z = random(2, 3, 4, dtype=dtype)
    want = function(z.movedim(dim, -1).contiguous())
    for layout in (z, z.mT.contiguous().mT, torch.stack([z, z * torch.nan], -1)[..., 0], z.flip(0).flip(0)):
        got = function(layout, dim)
        got = got.movedim(dim, -1) if function is softmax else got
        judge(got, want.double(), after_rounding(want.double(), 1e-99 + gamma(64, working_roundoff(dtype)), dtype))


@dtypes
def test_equal_scores_share_alike(dtype):
    z = torch.full((3, 8), 3.25, dtype=dtype)
    assert torch.equal(softmax(z), torch.full_like(z, 0.125))
    assert torch.equal(softmax(z[:1].expand(3, 8)), torch.full_like(z, 0.125))


@dtypes
@pytest.mark.parametrize("function", [softmax, logsumexp])
def test_a_shift_by_an_integer_changes_no_bit(function, dtype):
    z = torch.randint(-4, 5, (5, 6), generator=torch.Generator().manual_seed(0)).to(dtype)
    shifted = function(z + 32)
    assert torch.equal(shifted, function(z) if function is softmax else (function(z.double()) + 32).to(dtype))


@dtypes
def test_an_entry_of_minus_infinity_has_no_weight_and_no_gradient(dtype):
    z = torch.tensor([0.5, -torch.inf, 1.5], dtype=dtype)
    for function, g in ((softmax, random(3, dtype=dtype)), (logsumexp, torch.ones((), dtype=dtype))):
        y, dz = forward_and_backward(function, z, g=g)
        assert y.isfinite().all()
        assert dz.isfinite().all()
        assert dz[1] == 0
    assert softmax(z)[1] == 0


@dtypes
def test_the_largest_numbers_there_are(dtype):
    largest = torch.finfo(dtype).max
    z = torch.tensor([largest, -largest, largest, largest / 2], dtype=dtype)
    assert torch.equal(softmax(z), torch.tensor([0.5, 0, 0.5, 0], dtype=dtype))
    y, dz = forward_and_backward(logsumexp, z, g=torch.ones((), dtype=dtype))
    assert y == largest
    assert torch.equal(dz, torch.tensor([0.5, 0, 0.5, 0], dtype=dtype))


@dtypes
def test_logsumexp_of_nothing(dtype):
    for z in (torch.zeros(3, 0, dtype=dtype), torch.full((3, 2), -torch.inf, dtype=dtype)):
        y, dz = forward_and_backward(logsumexp, z, g=torch.ones(3, dtype=dtype))
        assert torch.equal(y, torch.full((3,), -torch.inf, dtype=dtype))
        assert torch.equal(dz, torch.zeros_like(z))


def test_no_slice_at_all():
    assert softmax(torch.zeros(0, 3)).shape == (0, 3)
    assert logsumexp(torch.zeros(0, 3)).shape == (0,)


@pytest.mark.parametrize("function", [softmax, logsumexp])
def test_refusals(function):
    z = torch.zeros(2, 3)
    for dim, error in ((2, ValueError), (-3, ValueError), (0.5, TypeError), (True, TypeError), (None, TypeError)):
        with pytest.raises(error, match="dim: expected"):
            function(z, dim)
    for wrong in (None, [1.0], z.long(), z.bool(), z.to(torch.complex64)):
        with pytest.raises(TypeError, match="z: expected"):
            function(wrong)
    with pytest.raises(ValueError, match="rank 0"):
        function(torch.tensor(1.0))


def test_softmax_of_nothing_is_refused():
    with pytest.raises(ValueError, match=r"z: expected at least one entry along dim=1, got shape \(3, 0\)"):
        softmax(torch.zeros(3, 0), 1)
    assert softmax(torch.zeros(3, 0), 0).shape == (3, 0)
