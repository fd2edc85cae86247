"""PyTorch's optimizers and schedules against the bounds of the formulas, and the printed gradient norms once more."""

import numpy as np
import pytest
import torch
from torch import nn

from veriformer.spec.arithmetic import FORMATS, Float, RunningError
from veriformer.spec.optimization.adam import adam, adam_start
from veriformer.spec.optimization.adamw import adamw
from veriformer.spec.optimization.sgd_momentum import MomentumState, sgd_momentum
from veriformer.spec.proofs.tower_arithmetic import entries

DTYPES = {"fp64": torch.float64, "fp32": torch.float32}
# Float is precise enough for fp32, and fp64 itself needs the exact oracle.
ROUNDED = {name: RunningError(FORMATS[name]) for name in DTYPES}
RNG = np.random.default_rng(1)


def walk(dtype, sizes=(1.0, 1e-6, 1e4, 1.0, 0.0, 3.0)):
    """Gradients of two parameters: of one size, tiny, large, with a gap and with zeros."""
    form = FORMATS[dtype]
    steps = [[form.round(size * RNG.normal(size=s)) for s in ((2, 2), (3,))] for size in sizes]
    steps[3][0] = None
    return [form.round(RNG.normal(size=s)) for s in ((2, 2), (3,))], steps


def torch_walk(make, dtype, params, steps):
    tensors = [nn.Parameter(torch.tensor(p, dtype=DTYPES[dtype])) for p in params]
    optimizer = make(tensors)
    for grads in steps:
        for p, g in zip(tensors, grads, strict=True):
            p.grad = None if g is None else torch.tensor(g, dtype=DTYPES[dtype])
        optimizer.step()
        yield [p.detach().to(torch.float64).numpy() for p in tensors]


def assert_within(xp, states, found):
    for s, got in zip(states, found, strict=True):
        value, bound = xp.judgeable(s.theta)
        assert (np.abs(value - got) <= bound).all()
        assert (bound < np.abs(value) + 1).all()


ADAMS = {
    "adam": (adam, lambda ps: torch.optim.Adam(ps, lr=0.1), {"lr": 0.1}),
    "adam with L2": (
        adam,
        lambda ps: torch.optim.Adam(ps, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.3),
        {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.3},
    ),
    "adamw": (adamw, lambda ps: torch.optim.AdamW(ps, lr=0.1), {"lr": 0.1}),
    "fused adamw": (
        adamw,
        lambda ps: torch.optim.AdamW(ps, lr=0.1, weight_decay=0.5, fused=True),
        {"lr": 0.1, "weight_decay": 0.5},
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ADAMS)
def test_adam_of_torch_stays_within_the_bound(name, dtype):
    formula, make, options = ADAMS[name]
    xp = ROUNDED[dtype]
    params, steps = walk(dtype)
    states = adam_start(xp, [xp.asarray(p) for p in params])
    for grads, found in zip(steps, torch_walk(make, dtype, params, steps), strict=True):
        states = formula(xp, states, grads, **options)
        assert_within(xp, states, found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_l2_and_decoupled_decay_are_told_apart(dtype):
    xp = ROUNDED[dtype]
    params, steps = walk(dtype)
    make = lambda ps: torch.optim.Adam(ps, lr=0.1, weight_decay=0.5)  # noqa: E731
    found = next(torch_walk(make, dtype, params, steps))
    (s, _) = adamw(xp, adam_start(xp, [xp.asarray(p) for p in params]), steps[0], lr=0.1, weight_decay=0.5)
    value, bound = xp.judgeable(s.theta)
    assert (np.abs(value - found[0]) > 100 * bound).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_momentum_of_torch_is_ours_with_another_start(dtype):
    # Its first velocity is the first gradient, undamped: ours from v₀ = g₁, where each parameter has one.
    xp = ROUNDED[dtype]
    params, steps = walk(dtype)
    make = lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.75, dampening=0.75)  # noqa: E731
    states = [MomentumState(p, g) for p, g in zip(params, steps[0], strict=True)]
    for grads, found in zip(steps, torch_walk(make, dtype, params, steps), strict=True):
        states = sgd_momentum(xp, states, grads, lr=0.1, beta=0.75)
        assert_within(xp, states, found)


def gradient_norms(eps):
    """The ten norms of document 004, section 3.4, in double precision, for a LayerNorm with this ε."""
    torch.manual_seed(0)
    x = torch.randn(1, 10, 16, requires_grad=True)
    blocks = [
        (nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)), nn.LayerNorm(16, eps=eps)) for _ in range(6)
    ]
    out = x.double()
    for fc, norm in blocks:
        out = norm.double()(out + fc.double()(out))
    out.pow(2).mean().backward()
    return np.array([float(p.grad.norm()) for fc, norm in blocks for p in (*fc.parameters(), *norm.parameters())][:10])


def test_the_printed_gradient_norms_measure_epsilon():
    usual, tenth, none = (gradient_norms(eps) for eps in (1e-5, 1e-6, 0.0))
    assert (usual < 1e-5).all()
    assert (np.abs(usual / tenth - 10) < 0.01).all()
    assert (none < 1e-14).all()


def test_formulas_run_in_plain_floats():
    xp = Float(FORMATS["fp32"])
    (s,) = adam(xp, adam_start(xp, [xp.asarray([1.0])]), [np.array([0.5])], lr=0.25, eps=0)
    assert 0.7499 < float(entries(s.theta)[0]) < 0.7501
