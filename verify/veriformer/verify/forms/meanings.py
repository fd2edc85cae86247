"""Meanings of arguments of unknown names: a usual name, or a value that the argument is given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

BUILT, CALLED = "built_with_", "called_with_"
"""Before the name of an argument: whether a constructor, or an entry of its config, has it, or a call."""

WORD = "word_of_"
"""Before the name of an argument by a word of which code is this operation, and another one by another word."""

WITHOUT = "without_"
"""Before the name of a part of a module, in place of which the identity is called."""

IDENTITY = "nn.Identity()"
"""The value of a reading that begins with ``WITHOUT``."""

Parameters = Mapping[str, inspect.Parameter]


def annotation_name(p: inspect.Parameter) -> str:
    """Return the name of the class that an annotation is, or its text; empty where there is none."""
    return p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", "")


Meanings = tuple[tuple[str, str], ...]
"""By argument, with ``BUILT`` or ``CALLED`` before its name, a usual name of what it is, or a key of ``VALUES``.

By part of a module, with ``WITHOUT`` before its name, ``IDENTITY``.
"""

VALUES: Mapping[str, Any] = {
    "None": None,
    "False": False,
    "True": True,
    "0": 0,
    "1": 1,
    "0.0": 0.0,
    "'gelu'": "gelu",
    "'relu'": "relu",
    "nn.GELU()": nn.GELU(),
    "nn.GELU": nn.GELU,
    "nn.LayerNorm": nn.LayerNorm,
}
"""Values by which an argument leaves the operation as it is, or chooses a usual part of it."""


def meaning(meanings: Meanings, place: str, name: str) -> str:
    """Return the usual name of an argument: its own unless a meaning is given."""
    return dict(meanings).get(place + name, name)


def rename_parameters(parameters: Parameters, meanings: Meanings, place: str) -> dict[str, inspect.Parameter]:
    """Return parameters under their contract's names, without those that are given a value."""
    known = {name: meaning(meanings, place, name) for name in parameters}
    return {known[name]: p for name, p in parameters.items() if known[name] == name or known[name] not in VALUES}


def rename_arguments(arguments: Mapping[str, Any], meanings: Meanings, place: str, own: Parameters) -> dict[str, Any]:
    """Return arguments under the code's own names, with given values added. own: the code's parameters."""
    said = {name.removeprefix(place): known for name, known in meanings if name.startswith(place)}
    back = {known: name for name, known in said.items() if name in own and known not in VALUES}
    values = {name: VALUES[known] for name, known in said.items() if name in own and known in VALUES}
    return {**{back.get(name, name): value for name, value in arguments.items()}, **values}


def with_renamed_arguments(function: Callable[..., Any], meanings: Meanings, own: Parameters) -> Callable[..., Any]:
    """Return a function that is called by the names that its arguments are known as."""
    shown = [p.replace(name=name) for name, p in rename_parameters(own, meanings, CALLED).items()]
    signature = inspect.Signature(sorted(shown, key=_place))

    @functools.wraps(function)
    def call(*arguments: Any, **given: Any) -> Any:
        bound = signature.bind(*arguments, **given)
        return function(**rename_arguments(bound.arguments, meanings, CALLED, own))

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _place(p: inspect.Parameter) -> tuple[int, bool]:
    return p.kind, p.default is not p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
