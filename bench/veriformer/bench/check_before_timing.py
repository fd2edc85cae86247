"""Correctness check of a GPU's attention before it is timed.

A kernel for halves accumulates in float32 and rounds to halves what it multiplies again: weights, gradients of scores,
outputs. The bound on an error is that of the specification's formula in float32, and what those roundings add.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from veriformer.bench.attention_kernels import Attend
from veriformer.spec.arithmetic import FORMATS, Float, Format, RunningError
from veriformer.spec.attention.attention import attention, attention_vjp

Reals = NDArray[np.float64]
_HALVES = {torch.bfloat16: FORMATS["bf16"], torch.float16: FORMATS["fp16"]}
_LENGTH, _HEADS = 193, 2  # beyond one block of every kernel, and no multiple of any


class WrongError(ValueError):
    """A result that is further from the exact one than rounding explains; the message says which and how far."""


def verify(attend: Attend, *, width: int, dtype: torch.dtype, is_causal: bool, device: torch.device) -> None:
    """Judge output and gradients of one call. Raises WrongError."""
    q, k, v, g = (torch.from_numpy(x).to(device, dtype) for x in _arguments(width, dtype))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    o = attend(*leaves, is_causal=is_causal)
    got = (o, *torch.autograd.grad(o, leaves, g))
    names, wanted = ("output", "dq", "dk", "dv"), expected(width, dtype, is_causal)
    for name, x, (exact, bound) in zip(names, got, wanted, strict=True):
        ratio = float((np.abs(x.detach().double().cpu().numpy() - exact) / bound).max())
        if not ratio <= 1:
            raise WrongError(f"{name}: the error is {ratio:.3g} times what rounding explains")


@cache
def expected(width: int, dtype: torch.dtype, is_causal: bool) -> list[tuple[Reals, Reals]]:
    """Exact values of output, dq, dk and dv, each with the bound on a right kernel's error."""
    xp = RunningError(FORMATS["fp32"])
    arguments = _arguments(width, dtype)
    raised = [xp.asarray(x) for x in arguments]
    results = (
        attention(xp, *raised[:3], is_causal=is_causal),
        *attention_vjp(xp, *raised, is_causal=is_causal)[:3],
    )
    added = _roundings(*arguments, half=_HALVES[dtype], is_causal=is_causal)
    judged = (xp.judgeable(x) for x in results)
    return [(exact, bound + more) for (exact, bound), more in zip(judged, added, strict=True)]


def _arguments(width: int, dtype: torch.dtype) -> tuple[Reals, ...]:
    """q, k, v and a cotangent, of numbers that the dtype holds exactly."""
    generator = torch.Generator().manual_seed(width)
    shape = (1, _HEADS, _LENGTH, width)
    return tuple(torch.randn(shape, generator=generator).to(dtype).double().numpy() for _ in range(4))


def _roundings(q: Reals, k: Reals, v: Reals, g: Reals, *, half: Format, is_causal: bool) -> tuple[Reals, ...]:
    """Return the terms that the roundings to halves add to the bounds of output, dq, dk and dv.

    Each weight, each gradient of a score and each result is rounded once, each D = Σ g o is formed from an o that has
    lost twice; one unit more covers what these do to one another and TF32, which cuts off.
    """
    n, u = k.shape[2], half.unit_roundoff
    xp = Float()
    identity = np.broadcast_to(np.eye(n), (*k.shape[:2], n, n))
    weights = attention(xp, *(xp.asarray(x) for x in (q, k, identity)), is_causal=is_causal)
    P: Reals = xp.tofloat(weights.value)
    dP = np.abs(g) @ np.abs(v).swapaxes(2, 3)
    dS = P * (dP + (P * dP).sum(-1, keepdims=True)) * q.shape[3] ** -0.5
    # Below the normal numbers what is lost is a part of the smallest one, however small the weight is.
    P, dS = (np.where(P > 0, x + half.smallest_subnormal, 0) for x in (3 * u * P, 5 * u * dS))
    sums = (P @ np.abs(v), dS @ np.abs(k), dS.swapaxes(2, 3) @ np.abs(q), P.swapaxes(2, 3) @ np.abs(g))
    return tuple(x + half.smallest_subnormal for x in sums)
