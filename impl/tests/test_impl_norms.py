"""LayerNorm and RMSNorm: values, gradients, exact cases, large means, halves."""

import math

import pytest
import torch

from tests.derived_bounds import (
    DTYPES,
    after_rounding,
    dtypes,
    forward_and_backward,
    gamma,
    judge,
    random,
    working_roundoff,
)
from veriformer.impl import layer_norm, rms_norm

D = 11
INPUTS = {
    "ordinary": random(3, 5, D),
    "shifted": random(3, 5, D) + 40,
    "one-signed": random(3, 5, D).abs() + 0.5,
    "tiny": random(3, 5, D) * 1e-3,
    "large": random(3, 5, D) * 100,
    "one vector": random(D),
    "width 1": random(4, 1) + 3,
}
inputs = pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)


def oracle(x, w, b, g, *, eps, centre, u):
    """Return `(exact, bound)` of y, dx, dw, db in float64, by the formulas and their error analysis."""
    x, w, b, g = (t.double() for t in (x, w, b, g))
    d = x.shape[-1]

    def mean(t):
        return t.mean(-1, keepdim=True)

    c = x - mean(x) if centre else x
    δ_c = gamma(d + 2, u) * mean(x.abs()) + u * c.abs() if centre else torch.zeros_like(x)
    var = mean(c**2)
    δ_var = mean(2 * c.abs() * δ_c + δ_c**2) + gamma(d + 4, u) * mean((c.abs() + δ_c) ** 2)
    rstd = (var + eps) ** -0.5
    ρ = (1 - (δ_var / (var + eps)).clamp(max=0.99)) ** -0.5 - 1 + gamma(8, u)
    h = c * rstd
    η = (δ_c * rstd) * (1 + ρ) + h.abs() * (ρ + 2 * u)
    y, δ_y = h * w + b, η * w.abs() + gamma(3, u) * (h * w).abs() + u * b.abs()
    a = g * w
    mean_a, mean_ah = mean(a) * centre, mean(a * h)
    δ_a, δ_ah = gamma(d + 4, u) * mean(a.abs()) * centre, mean(a.abs() * η) + gamma(d + 6, u) * mean((a * h).abs())
    size = a.abs() + mean(a.abs()) * centre + h.abs() * mean((a * h).abs())
    inner = a - mean_a - h * mean_ah
    δ_inner = δ_a + η * mean_ah.abs() + (h.abs() + η) * δ_ah + gamma(8, u) * size
    n = x.numel() // d

    def over_rows(t):
        return t.reshape(n, d).sum(0)

    dw, δ_dw = over_rows(g * h), over_rows(g.abs() * η + gamma(n + 4, u) * (g * h).abs())
    db, δ_db = over_rows(g), over_rows(gamma(n + 4, u) * g.abs())
    return (y, δ_y), (rstd * inner, rstd * (δ_inner * (1 + ρ) + ρ * inner.abs())), (dw, δ_dw), (db, δ_db)


@dtypes
@inputs
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_layer_norm(x, eps, dtype):
    x, u = x.to(dtype), working_roundoff(dtype)
    w, b, g = (random(*shape, dtype=dtype, seed=i) for i, shape in enumerate((x.shape[-1:], x.shape[-1:], x.shape)))
    got = forward_and_backward(lambda x, w, b: layer_norm(x, w, b, eps=eps), x, w, b, g=g)
    for have, (exact, bound) in zip(got, oracle(x, w, b, g, eps=eps, centre=True, u=u), strict=True):
        assert have.dtype == dtype
        judge(have, exact, after_rounding(exact, bound, dtype))


@dtypes
@inputs
@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_rms_norm(x, eps, dtype):
    x, u = x.to(dtype), working_roundoff(dtype)
    w, g = random(x.shape[-1], dtype=dtype, seed=1), random(*x.shape, dtype=dtype, seed=2)
    got = forward_and_backward(lambda x, w: rms_norm(x, w, eps=eps), x, w, g=g)
    for have, (exact, bound) in zip(got, oracle(x, w, 0 * w, g, eps=eps, centre=False, u=u)[:3], strict=True):
        assert have.dtype == dtype
        judge(have, exact, after_rounding(exact, bound, dtype))


@dtypes
def test_each_parameter_may_come_alone(dtype):
    x, w, b, g = (random(*shape, dtype=dtype, seed=i) for i, shape in enumerate(((3, D), (D,), (D,), (3, D))))
    one, zero = torch.ones_like(w), torch.zeros_like(b)
    for parameters in ({}, {"weight": w}, {"bias": b}, {"weight": w, "bias": b}):
        full = {"weight": one, "bias": zero} | parameters
        got = forward_and_backward(lambda x, **_: layer_norm(x, **parameters), x, g=g)  # noqa: B023
        want = forward_and_backward(lambda x, **_: layer_norm(x, **full), x, g=g)  # noqa: B023
        assert all(torch.equal(have, expected) for have, expected in zip(got, want, strict=True))
    assert torch.equal(rms_norm(x), rms_norm(x, one))
    gradient = torch.autograd.grad(layer_norm(x, None, b.requires_grad_()), b, g)[0]
    exact = g.double().sum(0)
    judge(gradient, exact, after_rounding(exact, gamma(6, working_roundoff(dtype)) * g.double().abs().sum(0), dtype))


@dtypes
@pytest.mark.parametrize("shift", [0, 1024])
def test_variance_three_plus_one_halves_exactly(shift, dtype):
    x = torch.tensor([[3.0, -1, -1, -1], [-3, 1, 1, 1]], dtype=dtype)
    shifted = x + (shift if dtype in (torch.float32, torch.float64) else 0)
    w, b = torch.tensor([4.0, -2, 6, 0], dtype=dtype), torch.tensor([0.0, 1, 2, 3], dtype=dtype)
    assert torch.equal(layer_norm(shifted, eps=1.0), x / 2)
    assert torch.equal(layer_norm(shifted, w, b, eps=1.0), x / 2 * w + b)
    assert torch.equal(rms_norm(x, w, eps=1.0), x / 2 * w)
    assert torch.equal(rms_norm(torch.full((2, 4), 2.0, dtype=dtype), w, eps=0.0), w.expand(2, 4))


@dtypes
def test_a_constant_vector_has_no_direction(dtype):
    b = random(8, dtype=dtype)
    assert torch.equal(layer_norm(torch.full((3, 8), 1000.0, dtype=dtype), None, b), b.expand(3, 8))
    assert not layer_norm(torch.full((3, 1), 7.0, dtype=dtype)).any()
    assert not rms_norm(torch.zeros(3, 8, dtype=dtype)).any()


@dtypes
@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_squares_leave_the_range_of_halves_but_nothing_overflows(norm, dtype):
    x = torch.tensor([[6e4, -6e4, 6e4, -6e4], [2.0**-24, -(2.0**-24), 2.0**-24, -(2.0**-24)]], dtype=dtype)
    y, dx = forward_and_backward(lambda x: norm(x, eps=0.0), x, g=random(2, 4, dtype=dtype))
    sign = torch.tensor([1.0, -1, 1, -1]).double().expand(2, 4)
    judge(y, sign, after_rounding(sign, gamma(16, working_roundoff(dtype)), dtype))
    assert dx[0].isfinite().all()


def test_gradients_of_halves_are_summed_in_float32():
    x = torch.ones(4096, 2, dtype=torch.bfloat16) * torch.tensor([1.0, -1.0], dtype=torch.bfloat16)
    g = torch.ones_like(x)
    _, _, dw, db = forward_and_backward(
        lambda x, w, b: layer_norm(x, w, b, eps=0.0), x, torch.ones(2).bfloat16(), torch.zeros(2).bfloat16(), g=g
    )
    assert torch.equal(dw, torch.tensor([4096.0, -4096.0]).bfloat16())
    assert torch.equal(db, torch.tensor([4096.0, 4096.0]).bfloat16())


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_layout_and_purity(norm):
    x, w, g = random(3, 5, D), random(D), random(3, 5, D, seed=1)
    want = forward_and_backward(norm, x, w, g=g)
    eps = {layer_norm: 1e-5, rms_norm: 1e-6}[norm]
    bounds = oracle(x, w, 0 * w, g, eps=eps, centre=norm is layer_norm, u=2.0**-52)
    for layout in (lambda t: t.mT.contiguous().mT, lambda t: torch.stack([t, t * torch.nan], -1)[..., 0]):
        got = forward_and_backward(norm, layout(x), torch.stack([w, w], -1)[:, 0], g=layout(g))
        for have, (exact, bound) in zip(got, bounds, strict=False):
            judge(have, exact, after_rounding(exact, bound, torch.float64))
    x.requires_grad_()
    norm(x, w).sum().backward()
    assert x.grad.shape == x.shape
    assert x._version == w._version == g._version == 0
    assert len(want) == 3


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_no_vector_at_all(norm):
    y, dx, dw = forward_and_backward(norm, torch.zeros(0, D), torch.ones(D), g=torch.zeros(0, D))
    assert y.shape == dx.shape == (0, D)
    assert not dw.any()


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_a_second_derivative_is_refused_rather_than_wrong(norm):
    x = random(2, D).requires_grad_()
    dx = torch.autograd.grad(norm(x).square().sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_without_numbers(norm, dtype):
    x, w = (torch.empty(shape, dtype=dtype, device="meta") for shape in ((2, D), (D,)))
    y, dx, dw = forward_and_backward(norm, x, w, g=x)
    assert (y.shape, dx.shape, dw.shape) == (x.shape, x.shape, w.shape)
    assert y.dtype == dx.dtype == dw.dtype == dtype


X, W = torch.zeros(2, D), torch.zeros(D)
REFUSALS = [
    ((None,), {}, TypeError, "x"),
    ((X.long(),), {}, TypeError, "x"),
    ((X[:, :0],), {}, ValueError, "x"),
    ((torch.tensor(1.0),), {}, ValueError, "x"),
    ((X, W[:-1]), {}, ValueError, "weight"),
    ((X, W[None]), {}, ValueError, "weight"),
    ((X, W[:1]), {}, ValueError, "weight"),
    ((X, W.double()), {}, TypeError, "weight"),
    ((X, 1.0), {}, TypeError, "weight"),
    ((X,), {"eps": -1e-9}, ValueError, "eps"),
    ((X,), {"eps": math.nan}, ValueError, "eps"),
    ((X,), {"eps": None}, TypeError, "eps"),
    ((X,), {"eps": True}, TypeError, "eps"),
]


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
@pytest.mark.parametrize(("arguments", "options", "error", "name"), REFUSALS)
def test_refusals(norm, arguments, options, error, name):
    with pytest.raises(error, match=f"{name}: expected"):
        norm(*arguments, **options)


@pytest.mark.parametrize(("bias", "error"), [(W[:-1], ValueError), (W.half(), TypeError), ([0.0] * D, TypeError)])
def test_refusals_of_bias(bias, error):
    with pytest.raises(error, match="bias: expected"):
        layer_norm(X, W, bias)
