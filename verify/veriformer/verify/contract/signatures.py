"""Signatures of the contract's operations, derived from their records: positional and optional arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from veriformer.spec.operations import AREAS, OPERATIONS
from veriformer.spec.operations.call import Argument, Operation

AREA: dict[str, str] = {one.name: area for area, operations in AREAS.items() for one in operations}
"""Area of every operation, in the contract's order."""

_NEVER_OMITTED = ("dtype",)  # a caller of `kv_cache` always says what it holds
_MADE_FROM_OTHERS = ("loss_fn",)  # of `accumulate_gradients`; no tensor, so the script that calls it writes it out


def _signature(operation: Operation) -> inspect.Signature:
    parameters = operation.signature.parameters.values()
    return inspect.Signature([p.replace(default=torch.float32) if p.name == "dtype" else p for p in parameters])


SIGNATURES: Mapping[str, inspect.Signature] = {name: _signature(one) for name, one in OPERATIONS.items()}
"""Signature of every operation, without annotations."""

POSITIONAL: dict[str, tuple[str, ...]] = {
    name: tuple(key for key, one in operation.call.items() if one.required and key not in _MADE_FROM_OTHERS)
    for name, operation in OPERATIONS.items()
}
"""Positional arguments, which are the required ones; every other argument is passed by name."""


def arguments(operation: str) -> Mapping[str, Argument]:
    """Return an operation's arguments, and the options of the operation that makes one of them; none for a model."""
    record = OPERATIONS.get(operation)
    if record is None:
        return {}
    return {**record.arguments, **(OPERATIONS[record.beside].options if record.beside else {})}


def _optional(operation: str) -> dict[str, Any]:
    given = arguments(operation).items()
    return {key: one.default for key, one in given if not one.required and key not in _NEVER_OMITTED}


OPTIONAL: dict[str, dict[str, Any]] = {name: options for name in OPERATIONS if (options := _optional(name))}
"""Optional arguments with their defaults, by operation. An implementation may lack any of them."""
