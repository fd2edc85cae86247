"""Clipping: norms of every size, exact cases, mixed dtypes, gradients through it."""

import math

import pytest
import torch

from tests.derived_bounds import DTYPES, U, after_rounding, dtypes, gamma, judge, random, working_roundoff
from veriformer.impl import clip_grad_norm


def gradients(dtype):
    return [random(3, 4, dtype=dtype), random(5, dtype=dtype), random(dtype=dtype, seed=7), random(0, 2, dtype=dtype)]


@dtypes
@pytest.mark.parametrize("max_norm", [0.25, 1, 2.999])
def test_values(max_norm, dtype):
    grads, u = gradients(dtype), working_roundoff(dtype)
    clipped, norm = clip_grad_norm(grads, max_norm)
    exact = torch.cat([g.double().flatten() for g in grads]).norm()
    assert norm.shape == ()
    assert norm.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    judge(norm, exact, after_rounding(exact, gamma(24, u) * exact, norm.dtype))
    for g, c in zip(grads[:3], clipped[:3], strict=True):
        assert c.dtype == dtype
        want = g.double() * (max_norm / exact)
        judge(c, want, after_rounding(want, gamma(32, u) * want.abs(), dtype))
    assert clipped[3].shape == (0, 2)


@dtypes
@pytest.mark.parametrize("max_norm", [5.0, 5, 5.1, 1e300, math.inf])
def test_inside_the_ball_nothing_changes_by_a_bit(max_norm, dtype):
    grads = [torch.tensor([3.0, -0.0], dtype=dtype), torch.tensor([[4.0], [0.0]], dtype=dtype)]
    clipped, norm = clip_grad_norm(grads, max_norm)
    assert norm == 5
    assert all(torch.equal(c, g) and torch.equal(c.signbit(), g.signbit()) for c, g in zip(clipped, grads, strict=True))
    grads = gradients(dtype)
    clipped, _ = clip_grad_norm(grads, max(max_norm, 9))
    assert all(torch.equal(c, g) for c, g in zip(clipped, grads, strict=True))


@dtypes
def test_three_four_five(dtype):
    grads = [torch.tensor([3.0], dtype=dtype), torch.tensor([-4.0], dtype=dtype)]
    (a, b), norm = clip_grad_norm(grads, 2.5)
    assert (a.item(), b.item(), norm.item()) == (1.5, -2.0, 5.0)


@pytest.mark.parametrize(
    ("dtype", "exponents"),
    [
        (torch.float64, (1020, -1020)),
        (torch.float32, (124, -124, -140)),
        (torch.bfloat16, (124, -124)),
        (torch.float16, (13, -20)),
    ],
)
def test_squares_may_overflow_and_vanish(dtype, exponents):
    for unit in (2.0**exponent for exponent in exponents):
        clipped, norm = clip_grad_norm([torch.tensor([3 * unit, -4 * unit], dtype=dtype)], 2.5 * unit)
        assert norm.item() == 5 * unit
        assert clipped[0].tolist() == [1.5 * unit, -2 * unit]


@pytest.mark.parametrize(("dtype", "exponent"), [(torch.float64, 1015), (torch.float32, 120), (torch.bfloat16, 120)])
def test_the_factor_may_be_smaller_than_any_number(dtype, exponent):
    unit = 2.0**exponent
    clipped, norm = clip_grad_norm([torch.tensor([3 * unit, -4 * unit], dtype=dtype)], 2.5 / unit)
    assert norm.item() == 5 * unit
    assert clipped[0].tolist() == [1.5 / unit, -2 / unit]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_norm_beyond_the_largest_number_still_clips(dtype):
    largest = torch.finfo(dtype).max
    clipped, _ = clip_grad_norm([torch.full((16,), largest, dtype=dtype)], 1.0)
    exact = torch.full((16,), 0.25).double()
    judge(clipped[0], exact, after_rounding(exact, gamma(32, working_roundoff(dtype)) * exact, dtype))


@dtypes
def test_the_ends_of_max_norm(dtype):
    grads = gradients(dtype)
    assert all(not c.any() for c in clip_grad_norm(grads, 0)[0])
    clipped, norm = clip_grad_norm(grads, math.inf)
    assert all(torch.equal(c, g) for c, g in zip(clipped, grads, strict=True))
    assert norm > 0


@dtypes
@pytest.mark.parametrize("max_norm", [0.0, 1.0, math.inf])
def test_zeros_stay_zeros(max_norm, dtype):
    clipped, norm = clip_grad_norm([torch.zeros(3, dtype=dtype), torch.zeros(0, dtype=dtype)], max_norm)
    assert norm == 0
    assert torch.equal(clipped[0], torch.zeros(3, dtype=dtype))


def test_an_empty_list():
    clipped, norm = clip_grad_norm([], 1.0)
    assert clipped == []
    assert norm.shape == ()
    assert norm == 0


@pytest.mark.parametrize("worst", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_shows_in_the_norm(worst):
    assert not clip_grad_norm([torch.tensor([1.0, worst]), torch.ones(2)], 1.0)[1].isfinite()


def test_every_tensor_keeps_its_own_dtype():
    grads = [torch.full((1,), 3.0, dtype=dtype) for dtype in DTYPES]
    clipped, norm = clip_grad_norm(grads, 3)
    assert norm.dtype == torch.float64
    assert norm == 6
    assert [c.dtype for c in clipped] == list(DTYPES)
    assert all(c.item() == 1.5 for c in clipped)
    assert clip_grad_norm(grads[1:], 3)[1].dtype == torch.float32


def test_layout_and_purity():
    x = random(4, 6)
    want = clip_grad_norm([x], 1.0)[0][0]
    for layout in (x.mT.contiguous().mT, torch.stack([x, x * math.nan], -1)[..., 0]):
        exact_norm = gamma(64, U[torch.float64])
        judge(clip_grad_norm([layout], 1.0)[0][0], want, after_rounding(want, exact_norm * want.abs(), torch.float64))
    assert clip_grad_norm([torch.ones(1).expand(16)], 2.0)[0][0].tolist() == [0.5] * 16
    assert x._version == 0


@pytest.mark.parametrize("max_norm", [1.0, 100.0])
def test_gradients_flow_through(max_norm):
    g, h = random(4).requires_grad_(), random(4, seed=1)
    (clipped,), norm = clip_grad_norm([g], max_norm)
    (got,) = torch.autograd.grad((clipped * h).sum() + 2 * norm, g)
    x = g.detach()
    r = x.norm()
    factor = min(1, max_norm / float(r))
    exact = 2 * x / r + (h if factor == 1 else factor * (h - x * (x * h).sum() / r**2))
    judge(
        got,
        exact,
        after_rounding(exact, gamma(64, U[torch.float64]) * (2 + h.abs() + 2 * (x * h).abs().sum()), torch.float64),
    )
    zero = torch.zeros(3).requires_grad_()
    (clipped,), norm = clip_grad_norm([zero], max_norm)
    assert torch.autograd.grad(clipped.sum() + norm, zero)[0].isfinite().all()


def test_shapes_without_numbers():
    (clipped,), norm = clip_grad_norm([torch.empty(3, 4, device="meta", dtype=torch.float16)], 1.0)
    assert (clipped.shape, clipped.dtype, norm.shape, norm.dtype) == ((3, 4), torch.float16, (), torch.float32)


G = [torch.ones(2)]
REFUSALS = [
    (G, -1.0, ValueError, "max_norm"),
    (G, math.nan, ValueError, "max_norm"),
    (G, None, TypeError, "max_norm"),
    (G, True, TypeError, "max_norm"),
    (G, "1", TypeError, "max_norm"),
    ([], -1.0, ValueError, "max_norm"),
    ([*G, None], 1.0, TypeError, r"grads\[1\]"),
    ([torch.ones(2, dtype=torch.int64)], 1.0, TypeError, r"grads\[0\]"),
    (torch.ones(2), 1.0, TypeError, "grads"),
    (None, 1.0, TypeError, "grads"),
    (1.0, 1.0, TypeError, "grads"),
]


@pytest.mark.parametrize(("grads", "max_norm", "error", "name"), REFUSALS)
def test_refusals(grads, max_norm, error, name):
    with pytest.raises(error, match=f"{name}: expected"):
        clip_grad_norm(grads, max_norm)
