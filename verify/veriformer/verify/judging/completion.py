"""Completion of calls of a target whose signature requires arguments that are optional in the contract."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from veriformer.verify.contract.signatures import OPTIONAL

_NEUTRAL: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {"weight": torch.ones_like, "bias": torch.zeros_like}
"""Neutral values by argument, equal to leaving it out: constructors from a tensor of the rows' length."""

_NORMS = ("layer_norm", "rms_norm")


def completed(operation: str, arguments: Mapping[str, Any], required: Collection[str]) -> Mapping[str, Any]:
    """Return the call with every missing required argument filled in: with its neutral value or its default."""
    missing = [name for name in required if arguments.get(name) is None]
    return {**arguments, **{name: _silent(operation, name, arguments) for name in missing}} if missing else arguments


def without(operation: str, required: Collection[str]) -> dict[str, str]:
    """Return, by feature, why calls that leave out a required argument whose default is None are not provided."""
    options = OPTIONAL.get(operation, {})
    said = "the signature requires it"
    return {f"the default of {name}": said for name in options if name in required and options[name] is None}


def _silent(operation: str, name: str, arguments: Mapping[str, Any]) -> Any:
    x = arguments.get("x")
    if operation in _NORMS and name in _NEUTRAL and isinstance(x, torch.Tensor) and x.ndim:
        return _NEUTRAL[name](torch.empty(x.shape[-1:], dtype=x.dtype, device=x.device))
    return OPTIONAL[operation][name]
