"""PyTorch's fused kernels against the bounds of the plain formulas: never beyond them, and a fair part of them."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from veriformer.spec.arithmetic import FORMATS, Exact, Float, RunningError

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ROUNDED = {name: RunningError(form) for name, form in FORMATS.items()}


def softmax(xp, z):
    e = xp.exp(z - xp.max(z, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def layer_norm(xp, x):
    c = x - xp.sum(x, axis=-1, keepdims=True) / x.shape[-1]
    return c / xp.sqrt(xp.sum(c * c, axis=-1, keepdims=True) / x.shape[-1] + 1e-5)


def attention(xp, q, k, v):
    return softmax(xp, q @ xp.swapaxes(k, -1, -2) / xp.sqrt(xp.asarray(q.shape[-1]))) @ v


def gelu(xp, x):
    return x * 0.5 * (1 + xp.erf(x / xp.sqrt(xp.asarray(2))))


def logsumexp(xp, z):
    m = xp.max(z, axis=-1, keepdims=True)
    return (m + xp.log(xp.sum(xp.exp(z - m), axis=-1, keepdims=True)))[..., 0]


KERNELS = {
    "softmax": (softmax, lambda z: F.softmax(z, dim=-1), 1),
    "layer_norm": (layer_norm, lambda x: F.layer_norm(x, x.shape[-1:]), 1),
    "attention": (attention, F.scaled_dot_product_attention, 3),
    "gelu": (gelu, F.gelu, 1),
    "logsumexp": (logsumexp, lambda z: torch.logsumexp(z, dim=-1), 1),
}


def share(name, dtype, rng, spread, mean):
    """The largest part of the bound that the kernel uses on one random input."""
    formula, kernel, inputs = KERNELS[name]
    shape = tuple(rng.integers(1, 9, size=2)) if inputs == 1 else (2, *rng.integers(1, 7, size=2))
    arrays = [FORMATS[dtype].round(rng.normal(size=shape) * spread + mean) for _ in range(inputs)]
    got = kernel(*[torch.from_numpy(x.copy()).to(DTYPES[dtype]) for x in arrays]).to(torch.float64).numpy()
    xp = ROUNDED[dtype]
    exact, bound = xp.judgeable(formula(xp, *[xp.asarray(x) for x in arrays]))
    assert np.isfinite(exact).all()
    with np.errstate(all="ignore"):
        ratio = np.where(got == exact, 0.0, np.abs(got - exact) / bound)
    assert (ratio <= 1).all(), f"{name} in {dtype}: {got} for {exact} within {bound}"
    return float(ratio.max())


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), spread=st.sampled_from([1, 10, 100, 1e-4]), mean=st.sampled_from([0, 3, -200]))
def test_pytorch_is_never_accused(name, dtype, seed, spread, mean):
    assert share(name, dtype, np.random.default_rng(seed), spread, mean) <= 1


# A bound is useful only if it is not far above what correct code loses: the smallest acceptable values of the median
# over inputs of each kernel's largest share. Halves use less, as the bound lets them accumulate in the half.
FLOORS = {"softmax": (0.04, 0.01), "layer_norm": (0.05, 0.015), "attention": (0.02, 0.001), "gelu": (0.05, 0.01)}


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", FLOORS)
def test_correct_code_uses_a_fair_part_of_the_bound(name, dtype, record_property):
    rng = np.random.default_rng(0)
    shares = [share(name, dtype, rng, 1, 0) for _ in range(100)]
    record_property("median share of the bound", float(np.median(shares)))
    record_property("largest share of the bound", max(shares))
    print(f"{name} in {dtype}: median {np.median(shares):.3f}, largest {max(shares):.3f} of the bound")
    assert np.median(shares) > FLOORS[name][dtype in ("bf16", "fp16")]


def milliseconds(f, repetitions):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def test_attention_is_fast_in_every_arithmetic(record_property):
    x = np.random.default_rng(0).normal(size=(3, 1, 2, 5, 4)).astype(np.float32).astype(np.float64)
    arithmetics = {"float": Float(), "exact": Exact(), "rounded fp32": ROUNDED["fp32"], "rounded fp64": ROUNDED["fp64"]}
    for name, xp in arithmetics.items():
        spent = milliseconds(lambda xp=xp: attention(xp, *[xp.asarray(a) for a in x]), 20)
        record_property(f"milliseconds in {name}", spent)
        print(f"attention in {name}: {spent:.3f} ms")
        # Ten times what they take on a slow machine: a second per formula would be another design.
        assert spent < {"float": 2, "exact": 20, "rounded fp32": 5, "rounded fp64": 30}[name]
