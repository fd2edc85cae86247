"""Target on copies of its arguments: failures that vanish are due to a target that modifies them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

MODIFIED = "was modified"
"""End of the message of a violation about a modified argument."""


class OnCopies:
    """An implementation each of whose operations gets a clone of every tensor, on the same graph."""

    def __init__(self, implementation: object) -> None:
        self._implementation = implementation

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._implementation, name)
        return _on_copies(found) if callable(found) else found


def _on_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*positional: Any, **options: Any) -> Any:
        return function(*map(_copy, positional), **{name: _copy(value) for name, value in options.items()})

    return call


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(_copy(item) for item in value)
    return value
