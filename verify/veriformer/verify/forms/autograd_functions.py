"""Subclasses of ``torch.autograd.Function`` as the functions that their ``apply`` is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch


def as_function(thing: Any) -> Any:
    """Return an autograd function as a function with the signature of its ``forward``; anything else unchanged."""
    return _function(thing) if is_autograd_function(thing) else thing


def is_autograd_function(thing: Any) -> bool:
    """Return whether it is called by ``apply``, as kernels with a backward pass of their own are."""
    return inspect.isclass(thing) and issubclass(thing, torch.autograd.Function)


@cache
def _function(kind: Any) -> Callable[..., Any]:
    signature = _signature(kind)

    def function(*arguments: Any, **given: Any) -> Any:
        bound = signature.bind(*arguments, **given)
        last = max((list(signature.parameters).index(name) for name in bound.arguments), default=-1)
        bound.apply_defaults()
        # What comes after the last argument that was given is left to forward: apply takes arguments by position alone.
        return kind.apply(*bound.args[: last + 1])

    function.__name__, function.__qualname__ = kind.__name__, kind.__qualname__
    function.__module__, function.__doc__ = kind.__module__, kind.__doc__
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _signature(kind: Any) -> inspect.Signature:
    parameters = list(inspect.signature(kind.forward).parameters.values())
    separate = kind.setup_context is not torch.autograd.Function.setup_context
    return inspect.Signature(parameters if separate else parameters[1:])
