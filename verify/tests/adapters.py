"""Implementations written as people write them: narrower than the contract, or wrong, each in one way."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional

from veriformer import impl


def attention(q: Any, k: Any, v: Any, *, mask: Any = None, is_causal: bool = False, scale: Any = None) -> Any:
    """A plain attention for as many key heads as query heads."""
    s = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        n, m = s.shape[-2:]
        s = s.masked_fill(~torch.ones(n, m, dtype=torch.bool).tril(m - n), float("-inf"))
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    return torch.softmax(s, -1) @ v


def tiled_heads(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """Grouped heads without a word: tiled, where they are to be repeated."""
    r = q.shape[1] // k.shape[1]
    return impl.attention(q, k.repeat(1, r, 1, 1), v.repeat(1, r, 1, 1), **options)


def square_only(q: Any, k: Any, v: Any, *, is_causal: bool = False) -> Any:
    """Attention of a sequence over itself, values as wide as keys."""
    assert q.shape == k.shape == v.shape, "q, k and v must have one shape"
    return impl.attention(q, k, v, is_causal=is_causal)


def of_squares(z: Any, dim: int = -1) -> Any:
    """Softmax of square matrices, which refuses others without a word."""
    assert z.ndim < 2 or z.shape[0] == z.shape[1]
    return torch.softmax(z, dim)


def last_axis(z: Any, dim: int = -1) -> Any:
    """Softmax of the last axis of two."""
    if z.ndim != 2 or dim not in (-1, 1):
        raise NotImplementedError("only the last axis of a matrix")
    return torch.softmax(z, dim)


def half_only(x: Any) -> Any:
    """A kernel for halves."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError("expected a half")
    return functional.silu(x)


@torch.no_grad()
def forward_only(x: Any) -> Any:
    """No backward pass."""
    return functional.silu(x)


def without_causal_window(q: Any, k: Any, v: Any, *, mask: Any = None, is_causal: bool = False) -> Any:
    """Masks and causality, but not both at once."""
    if mask is not None and is_causal:
        raise RuntimeError("mask and is_causal exclude each other")
    return impl.attention(q, k, v, mask=mask, is_causal=is_causal)


def moody(share: float) -> Callable[..., Any]:
    """Refuses a share of its calls, for no reason."""
    chance = random.Random(5)

    def softmax(z: Any, dim: int = -1) -> Any:
        if chance.random() < share:
            raise RuntimeError("out of luck")
        return torch.softmax(z, dim)

    return softmax


def rms_norm(eps: float) -> Callable[..., Any]:
    """An epsilon that the signature does not show."""

    def norm(x: Any, weight: Any = None) -> Any:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        return y if weight is None else y * weight

    return norm


def in_float32(x: Any) -> Any:
    """Computed in float32 whatever comes."""
    return functional.silu(x.float()).to(x.dtype)


def tanh_gelu(x: Any) -> Any:
    """The approximation, unsaid."""
    return functional.gelu(x, approximate="tanh")


def target(claims: dict[str, Any] | None = None, **operations: Any) -> SimpleNamespace:
    """Operations under their names, with claims."""
    return SimpleNamespace(**operations, **({"CLAIMS": claims} if claims else {}))
