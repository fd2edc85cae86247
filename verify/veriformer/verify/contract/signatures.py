"""Tables derived from the contract's signatures: areas, positional and optional arguments, integers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from veriformer.verify.contract.operations import attention, generation, layers, optimization, positions, scores

_AREAS: tuple[ModuleType, ...] = (scores, layers, attention, positions, optimization, generation)

STUBS: dict[str, dict[str, Callable[..., Any]]] = {
    area.__name__.rpartition(".")[2]: {
        name: stub for name, stub in vars(area).items() if inspect.isfunction(stub) and stub.__module__ == area.__name__
    }
    for area in _AREAS
}
"""Operations of each area as functions without bodies, in the contract's order."""

AREA: dict[str, str] = {name: area for area, stubs in STUBS.items() for name in stubs}
"""Area of every operation."""

_PARAMETERS: dict[str, list[inspect.Parameter]] = {
    name: list(inspect.signature(stub).parameters.values()) for stubs in STUBS.values() for name, stub in stubs.items()
}
_NEVER_OMITTED = ("dtype",)  # a caller of `kv_cache` always says what it holds
_MADE_FROM_OTHERS = ("loss_fn",)  # of `accumulate_gradients`; no tensor, so the script that calls it writes it out

POSITIONAL: dict[str, tuple[str, ...]] = {
    operation: tuple(
        p.name
        for p in parameters
        if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty and p.name not in _MADE_FROM_OTHERS
    )
    for operation, parameters in _PARAMETERS.items()
}
"""Positional arguments, which are the required ones; every other argument is passed by name."""


INTEGRAL: dict[str, frozenset[str]] = {
    operation: frozenset(p.name for p in parameters if str(p.annotation) in ("int", "int | None"))
    for operation, parameters in _PARAMETERS.items()
}
INTEGRAL["cached_attention"] |= INTEGRAL["kv_cache"]
"""Integer arguments by operation."""


def _optional(operation: str) -> dict[str, Any]:
    given = _PARAMETERS[operation]
    return {p.name: p.default for p in given if p.default is not p.empty and p.name not in _NEVER_OMITTED}


OPTIONAL: dict[str, dict[str, Any]] = {operation: _optional(operation) for operation in POSITIONAL}
OPTIONAL["cached_attention"] |= OPTIONAL["kv_cache"]
OPTIONAL = {operation: options for operation, options in OPTIONAL.items() if options}
"""Optional arguments with their defaults, by operation. An implementation may lack any of them.

`cached_attention` has those of the cache among its own, for it is asked for together with one."""
