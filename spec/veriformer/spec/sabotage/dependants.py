"""Dependants of a piece of source code: the modules that import it, and the functions whose code mentions it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from veriformer.spec.sabotage.mutation import PACKAGE, ROOT, defined

_BY_NAME = ("veriformer.spec.registry", "veriformer.spec.requirements")
"""Modules that import others by a name that they compute: they may rest on any."""


def source(module: str) -> Path:
    """Return the file of a module of the specification."""
    file = ROOT.joinpath(*module.split(".")[2:])
    return file / "__init__.py" if file.is_dir() else file.with_suffix(".py")


@cache
def imported(file: Path) -> frozenset[str]:
    """Return the modules of the specification that a file itself imports."""
    found: set[str] = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def forget(module: str) -> None:
    """Unload a module and every one that imports it, directly or not, so that the next import loads them anew."""
    loaded = [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]
    direct = {name: imported(source(name)) for name in loaded}
    found = {module, *_BY_NAME}
    while more := {name for name in loaded if name not in found and direct[name] & found}:
        found |= more
    for name in found & set(loaded):
        package, _, last = name.rpartition(".")
        del sys.modules[name]
        if package in sys.modules:  # where `from package import module` would find it still
            vars(sys.modules[package]).pop(last, None)


def reached(module: str, name: str) -> frozenset[Place]:
    """Return a definition and all that its code names, transitively; a class counts as a whole."""
    found, waiting = {(module, name)}, [(module, name)]
    while waiting:
        more = everything().get(waiting.pop(), frozenset()) - found
        found |= more
        waiting += more
    return frozenset(found)


Place = tuple[str, str]
"""A module, and a name that is defined or imported there."""


@cache
def everything() -> Mapping[Place, frozenset[Place]]:
    """Return, for every name of every module of the specification, the names in its definitions."""
    graph: dict[Place, frozenset[Place]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        module = ".".join((PACKAGE, *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        imports = dict(_imports(file))
        graph |= {(module, here): frozenset([there]) for here, there in imports.items()}
        for statement in _tree(file).body:
            for name in defined(statement):
                named = frozenset(_named(module, imports, ast.walk(statement)))
                graph[module, name] = graph.get((module, name), frozenset()) | named
    return graph


def _imports(file: Path) -> Iterator[tuple[str, Place]]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, (node.module or "", alias.name)


def _named(module: str, imports: Mapping[str, Place], nodes: Iterable[ast.AST]) -> Iterator[Place]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield module, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imports:
            yield ".".join(imports[node.value.id]), node.attr


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())
