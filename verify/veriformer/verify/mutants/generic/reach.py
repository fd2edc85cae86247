"""Which operations rest on which module, nearest first."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from veriformer import impl
from veriformer.impl import BACKENDS
from veriformer.verify.catalogue import POSITIONAL
from veriformer.verify.mutants.generic.rebuilding import PACKAGE


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module of the package."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


@cache
def imports(module: str) -> tuple[str, ...]:
    """The modules of the package that a module imports."""
    found = []
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
            found += [_module(node.module, alias.name) for alias in node.names]
    return tuple(dict.fromkeys(name for name in found if name != PACKAGE))


def _module(package: str, name: str) -> str:
    """``from package import name`` is of a module where there is one of that name, else of the package."""
    inner = f"{package}.{name}"
    try:
        return inner if find_spec(inner) is not None else package
    except ModuleNotFoundError:
        return package


def _distances(start: str) -> Mapping[str, int]:
    """How many imports away each module is."""
    found, front, steps = {start: 0}, [start], 0
    while front:
        steps += 1
        front = [name for module in front for name in imports(module) if name not in found]
        found |= dict.fromkeys(front, steps)
    return found


@cache
def _entries() -> dict[str, Mapping[str, int]]:
    """By operation, and by ``attention/backend``, what it rests on."""
    own = {name: inspect.unwrap(getattr(impl, name)).__module__ for name in POSITIONAL if name != "attention"}
    own = {name: module for name, module in own.items() if module.startswith(PACKAGE)}
    # Triton's kernels run on a GPU or in an interpreter, neither of which a mutant may count on.
    backends = {f"attention/{name}": each.__module__ for name, each in BACKENDS.items() if name != "triton"}
    return {name: _distances(module) for name, module in (own | backends).items()}


@cache
def modules() -> tuple[str, ...]:
    """Every module that some operation rests on."""
    return tuple(sorted({module for near in _entries().values() for module in near}))


def resting_on(module: str, limit: int = 4) -> tuple[str, ...]:
    """The entries that rest on a module, nearest first, at most so many: what all rest on, a few will show."""
    near = sorted((distances[module], name) for name, distances in _entries().items() if module in distances)
    chosen: dict[str, str] = {}
    for _, name in near:
        chosen.setdefault(name.partition("/")[0], name)
    return tuple(chosen.values())[:limit]


def implementation(package: Any, entries: tuple[str, ...]) -> SimpleNamespace:
    """The operations of these entries as attributes, attention from the backend that is named."""
    found = {}
    for entry in entries:
        operation, _, backend = entry.partition("/")
        found[operation] = package.BACKENDS[backend] if backend else getattr(package, operation)
    return SimpleNamespace(**found)
