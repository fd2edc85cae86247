"""The generic mutants as records: a fixed share of every function's edits, the same on every machine.

A mutant is run on the operations that use the edited function or class, nearest first.
To make it, the package is imported once more, with one module edited, beside the one that is there.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from veriformer import impl
from veriformer.impl import BACKENDS
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.mutants.generic.sites import Site, apply_edit, sites

PER_FUNCTION = 3
"""Edits per function that are run: enough for every operator to come up many times."""

_NOT_OURS_TO_JUDGE = ("flash", "models", "training", "interop")
"""Folders of the package that no operation's check reaches."""

_OF_WHOLE_MODELS = ("rewind", "grow")
"""Methods of caches that are for whole models, which take tokens back, and do not know how many will come."""

_COMPILED = ("triton", "flex")
"""Backends of kernels that are compiled for a GPU, which a mutant may not count on, or at every call anew."""

_Name = tuple[str, str]
"""A module, and a name at its top level: what one import line brings along."""

_PACKAGE = "veriformer.impl"


@dataclass(frozen=True)
class GenericMutant:
    """Our implementation with one edit. entries: the operations that rest on the edited code, nearest first."""

    site: Site
    entries: tuple[str, ...]

    @property
    def identifier(self) -> str:
        """The edit in words: module, function, before and after."""
        return self.site.identifier

    @property
    def title(self) -> str:
        """The operator and the line."""
        return f"{self.site.operator}, line {self.site.line}"

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that it provides."""
        return tuple(entry.partition("/")[0] for entry in self.entries)

    def build(self) -> object:
        """Return the operations of the edited package. Raises the exceptions of its import."""
        tree = apply_edit(copy.deepcopy(tree_of(self.site.module)), self.site)
        return implementation(_rebuilt(self.site.module, tree), self.entries)


@cache
def generic_mutants() -> tuple[GenericMutant, ...]:
    """Return for every function the first few edits by the hash of their names, if an operation rests on it."""
    found: list[GenericMutant] = []
    for module in modules():
        if any(f".{folder}" in module for folder in _NOT_OURS_TO_JUDGE):
            continue
        by_function: dict[str, list[Site]] = {}
        for site in sites(module, tree_of(module)):
            by_function.setdefault(site.function, []).append(site)
        for function, several in by_function.items():
            entries = resting_on(module, function.partition(".")[0])
            if not entries or function.rpartition(".")[2] in _OF_WHOLE_MODELS:
                continue  # for whole models and for measuring alone
            found += [GenericMutant(site, entries) for site in sorted(several, key=_order)[:PER_FUNCTION]]
    return tuple(found)


def named(identifier: str) -> GenericMutant:
    """Return the mutant of that name. Raises LookupError where no such edit is among those run."""
    for mutant in generic_mutants():
        if mutant.identifier == identifier:
            return mutant
    raise LookupError(f"generic {identifier!r}: no such edit; veriformer mutants generic lists them")


@cache
def survivors() -> Mapping[str, str]:
    """Return the examined survivors, each with its reason: the edit changes nothing, or a check is missing."""
    text = resources.files(__package__).joinpath("survivors.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def _order(site: Site) -> bytes:
    return hashlib.sha256(site.identifier.encode()).digest()


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module of the package."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


@cache
def _imported(module: str) -> Mapping[str, _Name]:
    """Return the definition of each name that a module imports from the package; a whole module has the name ""."""
    found = {}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_PACKAGE):
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
def _mentioned(module: str) -> Mapping[str, frozenset[_Name]]:
    """Return for each top-level name of a module the package's names that its statement mentions."""
    made: dict[str, ast.stmt] = {}
    for statement in tree_of(module).body:
        made |= dict.fromkeys(_makes(statement), statement)
    return {
        name: frozenset(found for node in ast.walk(statement) for found in _names_in(module, made, node))
        for name, statement in made.items()
    }


def _makes(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        if statement.name != "_":  # which names nothing: what a compiler is told of an operator
            yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _names_in(module: str, made: Mapping[str, ast.stmt], node: ast.AST) -> Iterator[_Name]:
    """Yield ``name`` of this module or imported into it, or ``module.name``."""
    imported = _imported(module)
    if isinstance(node, ast.Name):
        if node.id in made:
            yield module, node.id
        elif node.id in imported and imported[node.id][1]:
            yield imported[node.id]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
        yield imported[node.value.id][0], node.attr


def _distances(start: _Name) -> Mapping[_Name, int]:
    """Return the distance, in mentions, of every name reachable from ``start``."""
    found, front, steps = {start: 0}, [start], 0
    while front:
        steps += 1
        near = {name for module, mentioning in front for name in _mentioned(module).get(mentioning, ())}
        front = [name for name in near if name not in found]
        found |= dict.fromkeys(front, steps)
    return found


@cache
def _entries() -> dict[str, Mapping[_Name, int]]:
    """Return, by operation and by ``attention/backend``, the functions that it rests on."""
    objects = {name: inspect.unwrap(getattr(impl, name)) for name in POSITIONAL if name != "attention"}
    own = {name: (made.__module__, made.__name__) for name, made in objects.items()}
    own |= {
        f"attention/{name}": (each.__module__, "attention") for name, each in BACKENDS.items() if name not in _COMPILED
    }
    return {name: _distances(start) for name, start in own.items() if start[0].startswith(_PACKAGE)}


@cache
def modules() -> tuple[str, ...]:
    """Return every module that some operation rests on."""
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
    """Return all operations of the package, since one may use another; attention from the named backend."""
    found = {name: getattr(package, name) for name in POSITIONAL}
    for operation, _, backend in (entry.partition("/") for entry in entries):
        if backend:
            found[operation] = package.BACKENDS[backend]
    return SimpleNamespace(**found)


class _Edited(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads one module from a syntax tree."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.code = compile(tree, f"<edited {name}>", "exec")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the edited module, and of no other."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the edited code."""
        exec(self.code, vars(module))


def _rebuilt(name: str, tree: ast.Module) -> ModuleType:
    """Return the package with the module of that name made from this tree. Raises the exceptions of its import."""
    finder = _Edited(name, tree)
    with _set_aside():
        sys.meta_path.insert(0, finder)
        try:
            return importlib.import_module(_PACKAGE)
        finally:
            sys.meta_path.remove(finder)


@contextmanager
def _set_aside() -> Iterator[None]:
    """Take the package out of the interpreter's tables for a while, and put it back as it was."""
    above = sys.modules[_PACKAGE.partition(".")[0]]
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _belongs(name)}
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _belongs(name)]:
            del sys.modules[name]
        sys.modules.update(kept)
        above.impl = kept[_PACKAGE]  # type: ignore[attr-defined]  # importing the package again has rebound it


def _belongs(name: str) -> bool:
    return name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
