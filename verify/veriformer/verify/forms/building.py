"""Callables of candidates: a function as it is, or an instance of a class that holds no weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import NotOffered, Unfit
from veriformer.verify.forms.frameworks import over_tensors
from veriformer.verify.forms.precision import in_dtype

_MADE: dict[Any, Any] = {}


def make_callable(
    candidate: Candidate, sizes: Mapping[str, Any], dtype: torch.dtype, method: str = ""
) -> Callable[..., Any]:
    """Return the function itself, or an instance made from these sizes, once for each choice.

    method: of instances that are not called themselves. Of code over arrays the result is a function of tensors. Raises
    NotOffered for weights.
    """
    if not candidate.is_class:
        function: Callable[..., Any] = candidate.thing
        return function
    key = candidate.thing, candidate.meanings, tuple(sorted(sizes.items())), dtype
    if key not in _MADE:
        _MADE[key] = make_without_weights(candidate, sizes, own_sizes(candidate, sizes), dtype)
    return method_of(_MADE[key], candidate, method)


def make_without_weights(
    candidate: Candidate, sizes: Mapping[str, Any], given: Mapping[str, Any], dtype: torch.dtype
) -> Any:
    """Return an instance in evaluation mode. given: arguments by their own names. Raises NotOffered for weights."""
    try:
        made = built(candidate, sizes, given)
    except Unfit as reason:
        raise NotOffered(str(reason)) from reason
    if not isinstance(made, nn.Module):
        return made
    if next(made.parameters(), None) is not None:
        raise NotOffered("it holds weights")
    return in_dtype(made, dtype).eval()


def method_of(made: Any, candidate: Candidate, method: str = "") -> Callable[..., Any]:
    """Return what is called of an instance, as a function of tensors."""
    if isinstance(made, nn.Module) and method in ("", "forward"):
        method = "__call__"
    own = getattr(made, method or ("__call__" if callable(made) else "forward"))
    over: Callable[..., Any] = own if isinstance(made, nn.Module) else over_tensors(own, candidate.module)
    return over


def own_sizes(candidate: Candidate, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that the constructor has under that very name."""
    return {name: sizes[name] for name in candidate.constructor if name in sizes}
