"""Error bounds of right results: rounding alone, and nothing chosen by hand."""

import pytest
import torch

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
U = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))


def gamma(n, u):
    """Return γ_n: the relative error of n operations, as in a sum of n + 1 terms in any order."""
    return n * u / (1 - n * u)


def working_roundoff(dtype):
    """Return the roundoff inside an operation: halves work in float32; float64 counts twice, for tests use it too."""
    return {torch.float64: 2 * U[torch.float64]}.get(dtype, U[torch.float32])


def after_rounding(exact, bound, dtype):
    """Widen a bound by the rounding of a result to its dtype, and by underflow."""
    return bound + U[dtype] * (exact.abs() + bound) + torch.finfo(dtype).tiny


def judge(got, exact, bound):
    """Refuse any element that is further from the exact one than its bound, and comparisons that show nothing."""
    assert got.shape == exact.shape
    assert exact.numel() > 0
    assert bool(exact.isfinite().all())
    assert bool(got.isfinite().all())
    excess = (got.double() - exact).abs() / bound
    assert float(excess.max()) <= 1, f"error {float(excess.max()):.3g} times the bound"


def random(*shape, dtype=torch.float64, seed=0):
    """Draw normal numbers, always the same for one shape and seed."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def forward_and_backward(function, *tensors, g):
    """Return a function's result and its gradients for the cotangent `g`."""
    leaves = [x.detach().clone().requires_grad_() for x in tensors]
    y = function(*leaves)
    return y.detach(), *torch.autograd.grad(y, leaves, g)
