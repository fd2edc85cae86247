"""Checks of the word for a target that neither load it nor import PyTorch."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from veriformer.spec.suggestion import meant, some
from veriformer.verify import targets
from veriformer.verify.targets.claim_keys import check_keys
from veriformer.verify.targets.error import TargetError

_OWN_WAYS = frozenset(("__getattr__", "globals", "vars", "locals", "exec", "eval", "setattr", "modules"))
"""A file that has one of these may define names that cannot be read off it."""


def check(spec: str) -> None:
    """Raise TargetError where it can be seen, without running anything, that nothing can be loaded by that word."""
    if targets.is_shipped(spec):
        return
    place, attribute = parted(spec)
    if place.endswith((".py", ".json")):
        _check_file(spec, place, attribute)
    elif not all(part.isidentifier() for part in place.split(".")) or not _is_there(place.partition(".")[0]):
        raise TargetError(unknown(spec))


def parted(spec: str) -> tuple[str, str]:
    """Return the file or module of a word, and the attribute that it names; empty where it names none."""
    place, _, attribute = spec.partition(":") if not Path(spec).exists() else (spec, "", "")
    return place, attribute


def unknown(spec: str) -> str:
    """Return the message on a word that stands for nothing."""
    return (
        f"target {spec!r}: expected a file (path/to/mine.py), a module (pkg.mod), an attribute (pkg.mod:thing) "
        f"or a name that ships with the suite ({some(targets.names())}){meant(spec, [*targets.names(), *_files(spec)])}"
    )


def no_file(place: str) -> str:
    """Return the message on a file that is not there."""
    close = meant(place, _files(place))
    return f"target {place!r}: no such file (looked at {Path(place).resolve()}){close}"


def no_attribute(spec: str, place: str, attribute: str, names: Iterator[str] | list[str]) -> str:
    """Return the message on a name that a file or module lacks."""
    return f"target {spec!r}: {place} has no attribute {attribute!r}{meant(attribute, names)}"


def _files(place: str) -> list[str]:
    """Return the Python files beside one that is not there."""
    folder = Path(place).parent
    try:
        return [str(file) for file in sorted(folder.glob("*.py"))]
    except OSError:
        return []


def _check_file(spec: str, place: str, attribute: str) -> None:
    path = Path(place)
    if not path.is_file():
        raise TargetError(no_file(place))
    try:
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
            return
        tree = ast.parse(path.read_bytes(), place)
    except SyntaxError as error:
        line = f": {error.text.strip()}" if error.text else ""
        where = f"{place}:{error.lineno}" if error.lineno else place
        raise TargetError(f"target {spec!r} could not be loaded: SyntaxError: {error.msg} ({where}{line})") from error
    except (OSError, ValueError) as error:
        raise TargetError(f"target {spec!r} could not be read: {error}") from error
    for claims in _literals(tree, "CLAIMS"):
        check_keys(claims)
    if attribute and not _may_have(tree, attribute):
        public = [name for name in _bound(tree.body) if not name.startswith("_")]
        raise TargetError(no_attribute(spec, place, attribute, public))


def _literals(tree: ast.Module, name: str) -> Iterator[object]:
    """Give the values that a file assigns to a name where they are written out."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            try:
                yield ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue


def _may_have(tree: ast.Module, attribute: str) -> bool:
    """Return whether a file binds a name at its top level, or in a way that cannot be read off it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return True
        if any(getattr(node, key, None) in _OWN_WAYS for key in ("id", "attr", "name")):
            return True
        if isinstance(node, ast.Global) and attribute in node.names:
            return True
    return attribute in set(_bound(tree.body)) or attribute.startswith("__")


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    """Give the names that statements bind, those within functions and classes left out."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((one.asname or one.name).partition(".")[0] for one in node.names)
            continue
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            elif isinstance(child, ast.stmt) and child is not node:
                yield from _bound([child])


def _is_there(top: str) -> bool:
    """Return whether a module or package of that name can be found."""
    if top in sys.modules or top in sys.builtin_module_names:
        return True
    try:
        return (
            PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is not None
            or importlib.util.find_spec(top) is not None
        )
    except (ImportError, ValueError, AttributeError):
        return True  # it is to be imported, which says more
