"""Formulas after edits of their source: a text that stands there exactly once is replaced by another.

A formula's source is that of every function of the spec that it reaches by name. The edited functions are compiled into
a copy of the formula; the spec itself stays as it is.
"""

from __future__ import annotations
import __future__

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, cast

from veriformer.spec.formula_reach import MATHEMATICS_IN, names

Edit = tuple[str, str]
"""Text in the source of a formula, where it stands exactly once, and the text that takes its place."""

_VOCABULARY = tuple(f"{MATHEMATICS_IN}{package}" for package in ("arithmetic", "proofs"))
"""Packages whose functions are taken as they are: no formula stands there."""


@functools.cache
def edited(formula: Callable[..., Any], edits: tuple[Edit, ...]) -> Callable[..., Any]:
    """Return the formula after edits, made one after the other.

    Raises ValueError for an edit whose old text does not stand exactly once in the formula's source.
    """
    sources = {function: inspect.getsource(function) for function in _reached(formula)}
    for old, new in edits:
        found = [function for function, text in sources.items() for _ in range(text.count(old))]
        if len(found) != 1:
            raise ValueError(f"edit: expected once in the formula, got {len(found)} times: {old!r}; quote other text")
        sources[found[0]] = sources[found[0]].replace(old, new)
    return _compiled(formula, sources)


def _reached(formula: Callable[..., Any]) -> list[FunctionType]:
    """Return the functions of the spec that a formula reaches by name, itself included if it is one of them."""
    found: list[FunctionType] = []
    waiting: list[Any] = [formula]
    while waiting:
        function = waiting.pop()
        if _is_mathematics(function):
            found.append(function)
        reached = (function.__globals__.get(name) for name in names(function.__code__))
        waiting += dict.fromkeys(f for f in reached if _is_mathematics(f) and f not in (*found, *waiting))
    return found


def _is_mathematics(value: Any) -> bool:
    if not isinstance(value, FunctionType) or not value.__module__.startswith(MATHEMATICS_IN):
        return False
    return not value.__module__.startswith(_VOCABULARY)


def _compiled(formula: Callable[..., Any], sources: Mapping[FunctionType, str]) -> FunctionType:
    """Return the formula over copies of the functions, compiled from these sources where they are others."""
    copies: dict[FunctionType, FunctionType] = {}
    spaces: dict[int, dict[str, Any]] = {}
    whole = cast("FunctionType", formula)
    for function in dict.fromkeys((*sources, whole)):
        space = spaces.setdefault(id(function.__globals__), dict(function.__globals__))
        source = sources.get(function, inspect.getsource(function))
        same = source == inspect.getsource(function)
        copies[function] = _copy(function, space) if same else _made(function, source, space)
    for space in spaces.values():
        functions = {name: value for name, value in space.items() if isinstance(value, FunctionType)}
        space |= {name: copies[value] for name, value in functions.items() if value in copies}
    return copies[whole]


def _copy(function: FunctionType, space: dict[str, Any]) -> FunctionType:
    copied = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


def _made(function: FunctionType, source: str, space: dict[str, Any]) -> FunctionType:
    code = compile(source, f"<edited {function.__qualname__}>", "exec", __future__.annotations.compiler_flag, True)
    defined: dict[str, Any] = {}
    exec(code, space, defined)
    made: FunctionType = defined[function.__name__]
    return made
