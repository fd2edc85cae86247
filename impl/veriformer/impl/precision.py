"""The dtype in which sums are formed: halves carry too few digits, and too little range, to accumulate in."""

import torch
from torch import Tensor

_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


_DEVICES = ("cpu", "cuda", "hpu", "maia", "mps", "mtia", "privateuseone", "xla", "xpu")
_AUTOCAST = frozenset(kind for kind in _DEVICES if torch.amp.is_autocast_available(kind))
"""Kinds of device that have autocast, looked up once: the compiler of PyTorch 2.11 does not trace this call."""


def uses_autocast(kind: str) -> bool:
    """Return whether autocast is on for a kind of device, such as "cuda"."""
    return kind in _AUTOCAST and torch.is_autocast_enabled(kind)


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return float32 for the two halves, and `dtype` itself for float32 and float64."""
    return _WIDER.get(dtype, dtype)


def upcast(x: Tensor) -> Tensor:
    """Return `x` in its accumulation dtype; differentiable, and `x` itself where nothing needs to change."""
    return x.to(accumulation_dtype(x.dtype))


def kernels_lose_digits(x: Tensor) -> bool:
    """Tell whether PyTorch's own kernels need `x` in float32: they accumulate halves in it, but on CPUs not always."""
    return x.dtype in _WIDER and x.is_cpu


def upcast_half(x: Tensor) -> Tensor:
    """Return float16 in float32, for products and sums that may leave its range; bfloat16 has the range of float32.

    Matrix products of bfloat16 accumulate in float32 by themselves, and keep the speed of their own hardware.
    """
    return x.float() if x.dtype == torch.float16 else x
