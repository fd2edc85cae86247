"""Arguments for the target: copied, and completed by optional arguments that its signature requires.

For formulas they are converted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import letters_of
from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.judging.judge import Floats
from veriformer.verify.scripts.script import Seed

_NEUTRAL: Mapping[str, Callable[..., torch.Tensor]] = {"weight": torch.ones, "bias": torch.zeros}
"""Neutral values by parameter, equal to leaving it out: constructors from its shape."""


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


def lift(value: Any, xp: Any) -> Any:
    """Convert a value for a formula: floating tensors into the arithmetic, masks and ids into NumPy arrays."""
    if isinstance(value, torch.Tensor):
        return xp.asarray(array(value)) if value.is_floating_point() else value.detach().cpu().resolve_neg().numpy()
    if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        return [lift(item, xp) for item in value]
    return value


def with_required_arguments(
    operation: str, arguments: Mapping[str, Any], required: Collection[str]
) -> Mapping[str, Any]:
    """Return the call with every missing required argument filled in: with its neutral value or its default."""
    missing = [name for name in required if arguments.get(name) is None]
    return (
        {**arguments, **{name: _silent_value(operation, name, arguments) for name in missing}} if missing else arguments
    )


def without(operation: str, required: Collection[str]) -> dict[str, str]:
    """Return, by feature, why calls that leave out a required argument whose default is None are not provided."""
    options = OPTIONAL.get(operation, {})
    said = "the signature requires it"
    return {f"the default of {name}": said for name in options if name in required and options[name] is None}


def _silent_value(operation: str, name: str, arguments: Mapping[str, Any]) -> Any:
    record = OPERATIONS[operation]
    if name in record.parameters and name in _NEUTRAL:
        given = {key: x for key in record.tensors if isinstance(x := arguments.get(key), torch.Tensor)}
        sizes = record.sizes({key: x.shape for key, x in given.items()})
        letters = [letter for factors in letters_of(record.tensors[name].axes) for letter in factors]
        if set(letters) <= sizes.keys():
            like = next(iter(given.values()))
            return _NEUTRAL[name]([sizes[letter] for letter in letters], dtype=like.dtype, device=like.device)
    return OPTIONAL[operation][name]
