"""Sizes that code reads as constants of its module instead of being given them: set while it is built and called."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType
from typing import Any

from torch import nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.size_names import size_of

_SIZES = frozenset(
    ("width", "inner", "heads", "kv_heads", "head_dim", "length", "vocabulary", "layers", "experts", "top_k", "batch")
)
"""Sizes that a constant may be: each of them is a whole number."""


def constants_of(candidate: Candidate) -> dict[str, str]:
    """Return, by name of a constant that the class or its networks read, the size that it stands for.

    A constant that the module does not have (it comes from the data, as a vocabulary does) counts by its name; one that
    is no whole number does not.
    """
    if not candidate.is_network:
        return {}
    if candidate.thing not in _FOUND:
        _FOUND[candidate.thing] = _found(candidate)
    return _FOUND[candidate.thing]


_FOUND: dict[Any, dict[str, str]] = {}


def _found(candidate: Candidate) -> dict[str, str]:
    own = _globals(candidate)
    names = {name for kind in _kinds(candidate) for name in _read(kind)}
    found = {name: size_of(name, names) for name in names if len(name) > 1 and _may_be_size(own, name)}
    return {name: size for name, size in found.items() if size in _SIZES}


@contextmanager
def sizes_set(candidate: Candidate, sizes: Mapping[str, Any]) -> Iterator[None]:
    """Let the code of the module read these sizes as its constants, which are put back afterwards."""
    values = _values(candidate, sizes)
    with _exchanged(_globals(candidate) if values else {}, values):
        yield


def with_read_constants(candidate: Candidate, made: Any, sizes: Mapping[str, Any]) -> Any:
    """Return an instance whose calls read the constants that it was built with."""
    values = _values(candidate, sizes)
    if not values or not isinstance(made, nn.Module):
        return made
    within: list[Any] = []

    def enter(*_: Any) -> None:
        within.append(_exchanged(_globals(candidate), values))
        within[-1].__enter__()

    def leave(*_: Any) -> None:
        within.pop().__exit__(None, None, None)

    made.register_forward_pre_hook(enter)
    made.register_forward_hook(leave, always_call=True)
    return made


def _values(candidate: Candidate, sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: sizes[size] for name, size in constants_of(candidate).items() if size in sizes}


@contextmanager
def _exchanged(own: dict[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    before = {name: own[name] for name in values if name in own}
    own.update(values)
    try:
        yield
    finally:
        for name in values:
            own.pop(name, None)
        own.update(before)


def _globals(candidate: Candidate) -> dict[str, Any]:
    """Return the globals that the methods of the class read: a file that was loaded twice has two modules of one
    name."""
    own = (x.__globals__ for x in vars(candidate.thing).values() if inspect.isfunction(x))
    return next(own, {})


def _may_be_size(own: Mapping[str, Any], name: str) -> bool:
    return name not in own or (isinstance(own[name], int) and not isinstance(own[name], bool))


def _kinds(candidate: Candidate) -> list[type]:
    """Return the class, and the networks of its module that its constructor names, with those that these name."""
    own, found, left = _globals(candidate), [], [candidate.thing]
    while left:
        kind = left.pop()
        if kind in found or not (inspect.isclass(kind) and issubclass(kind, nn.Module)) or not _is_of(kind, own):
            continue
        found.append(kind)
        left += [own[name] for name in _read(kind) if name in own]
        left += kind.__bases__
    return found


def _is_of(kind: type, own: Mapping[str, Any]) -> bool:
    """Return whether a class was defined where these constants stand: its code reads no others."""
    return any(inspect.isfunction(x) and x.__globals__ is own for x in vars(kind).values())


def _read(kind: type) -> Iterator[str]:
    """Yield the constants that the methods of a class read."""
    for function in vars(kind).values():
        if inspect.isfunction(function):
            yield from _read_by(function.__code__)


def _read_by(code: CodeType) -> Iterator[str]:
    yield from (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _read_by(inner)
