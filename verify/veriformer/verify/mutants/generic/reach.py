"""Reachability: the operations that use a function or class, nearest first."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from veriformer import impl
from veriformer.impl import BACKENDS
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.mutants.generic.rebuilding import PACKAGE

_COMPILED = ("triton", "flex")
"""Backends of kernels that are compiled for a GPU, which a mutant may not count on, or at every call anew."""

Name = tuple[str, str]
"""A module, and a name at its top level: what one import line brings along."""


@cache
def tree(module: str) -> ast.Module:
    """Return the syntax tree of a module of the package."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


@cache
def _imported(module: str) -> Mapping[str, Name]:
    """Return the definition of each name that a module imports from the package; a whole module has the name ""."""
    found = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found[alias.asname or alias.name] = (inner, "") if _is_module(inner) else (node.module, alias.name)
    return found


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def _mentioned(module: str) -> Mapping[str, frozenset[Name]]:
    """By name at the top level of a module, what of the package the statement that makes it mentions."""
    made: dict[str, ast.stmt] = {}
    for statement in tree(module).body:
        made |= dict.fromkeys(_makes(statement), statement)
    return {
        name: frozenset(found for node in ast.walk(statement) for found in _meant(module, made, node))
        for name, statement in made.items()
    }


def _makes(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        if statement.name != "_":  # which names nothing: what a compiler is told of an operator
            yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _meant(module: str, made: Mapping[str, ast.stmt], node: ast.AST) -> Iterator[Name]:
    """``name`` of this module or imported into it, or ``module.name``."""
    imported = _imported(module)
    if isinstance(node, ast.Name):
        if node.id in made:
            yield module, node.id
        elif node.id in imported and imported[node.id][1]:
            yield imported[node.id]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
        yield imported[node.value.id][0], node.attr


def _distances(start: Name) -> Mapping[Name, int]:
    """Return the distance, in mentions, of every name reachable from ``start``."""
    found, front, steps = {start: 0}, [start], 0
    while front:
        steps += 1
        near = {name for module, mentioning in front for name in _mentioned(module).get(mentioning, ())}
        front = [name for name in near if name not in found]
        found |= dict.fromkeys(front, steps)
    return found


@cache
def _entries() -> dict[str, Mapping[Name, int]]:
    """By operation, and by ``attention/backend``, what it rests on."""
    objects = {name: inspect.unwrap(getattr(impl, name)) for name in POSITIONAL if name != "attention"}
    own = {name: (made.__module__, made.__name__) for name, made in objects.items()}
    own |= {
        f"attention/{name}": (each.__module__, "attention") for name, each in BACKENDS.items() if name not in _COMPILED
    }
    return {name: _distances(start) for name, start in own.items() if start[0].startswith(PACKAGE)}


@cache
def modules() -> tuple[str, ...]:
    """Every module that some operation rests on."""
    return tuple(sorted({module for near in _entries().values() for module, _ in near}))


def resting_on(module: str, name: str, limit: int = 3) -> tuple[str, ...]:
    """Return the entries that rest on a name, nearest first, at most so many: what all rest on, a few will show."""
    near = sorted(
        (distances[module, name], entry) for entry, distances in _entries().items() if (module, name) in distances
    )
    chosen: dict[str, str] = {}
    for _, entry in near:
        chosen.setdefault(entry.partition("/")[0], entry)
    return tuple(chosen.values())[:limit]


def implementation(package: Any, entries: tuple[str, ...]) -> SimpleNamespace:
    """All operations of the package, since one may be used with another; attention from the backend that is named."""
    found = {name: getattr(package, name) for name in POSITIONAL}
    for operation, _, backend in (entry.partition("/") for entry in entries):
        if backend:
            found[operation] = package.BACKENDS[backend]
    return SimpleNamespace(**found)
