"""Copies of arguments for the target, and their conversion for formulas."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.verify.judging.judge import Floats
from veriformer.verify.scripts.script import Seed


def fresh(value: Any, leaf: bool) -> Any:
    """Return a copy that the target may modify: equal values and strides, a new generator for a seed."""
    if isinstance(value, Seed):
        return value.generator()
    if isinstance(value, torch.Tensor):
        return _copy(value).requires_grad_(leaf and value.is_floating_point())
    if isinstance(value, list | tuple):
        return type(value)(fresh(item, leaf) for item in value)
    return value


def _copy(value: torch.Tensor) -> torch.Tensor:
    steps = zip(value.shape, value.stride(), strict=True)
    base = value.detach()[tuple(slice(0, 1) if stride == 0 and size > 1 else slice(None) for size, stride in steps)]
    extent = 1 + sum((size - 1) * stride for size, stride in zip(base.shape, base.stride(), strict=True))
    if base.is_floating_point() and extent > base.numel() > 0:  # what lies between its entries is nobody's
        between = torch.full((extent,), torch.nan, dtype=base.dtype, device=base.device)
        copy = between.as_strided(base.shape, base.stride()).copy_(base)
    else:
        copy = torch.empty_strided(base.shape, base.stride(), dtype=base.dtype, device=base.device).copy_(base)
    return copy if copy.shape == value.shape else copy.expand(value.shape)


def plain(value: Any) -> Any:
    """Return a result with its tensors as plain torch.Tensor, so that no override of a subclass takes part in the
    verdict.

    Subclasses that hold their numbers elsewhere stay what they are.
    """
    if type(value) in (list, tuple):
        return type(value)(plain(item) for item in value)
    if not isinstance(value, torch.Tensor) or type(value) in (torch.Tensor, torch.nn.Parameter):
        return value
    if type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return value
    return torch.Tensor.as_subclass(value, torch.Tensor)


def array(tensor: torch.Tensor) -> Floats:
    """Return a tensor as a float64 array, which holds every value of the four dtypes exactly."""
    values: Floats = tensor.detach().to("cpu", torch.float64).resolve_neg().numpy()
    return values


def lifted(value: Any, xp: Any) -> Any:
    """Convert a value for a formula: floating tensors into the arithmetic, masks and ids into NumPy arrays."""
    if isinstance(value, torch.Tensor):
        return xp.asarray(array(value)) if value.is_floating_point() else value.detach().cpu().resolve_neg().numpy()
    if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        return [lifted(item, xp) for item in value]
    return value
