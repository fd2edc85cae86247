"""The text of a module that is not imported: where it lies, and whether it may have a name."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

_OWN_WAYS = frozenset(("__getattr__", "globals", "vars", "locals", "exec", "eval", "setattr", "modules"))
"""A file that has one of these may define names that cannot be read off it."""


def source_of(name: str) -> Path | None:
    """Return the Python file of a module, found without importing a package; None where it has none, or is hidden."""
    folders, parts, found = [str(Path.cwd()), *sys.path], name.split("."), None
    for length in range(1, len(parts) + 1):
        try:
            found = PathFinder.find_spec(".".join(parts[:length]), folders)
            folders = list(found.submodule_search_locations or ()) if found is not None else []
        except (ImportError, KeyError):  # a part of a namespace, which needs it imported
            return None
    file = Path(found.origin) if found is not None and found.origin else None
    return file if file is not None and file.suffix == ".py" and file.is_file() else None


def parsed(file: Path) -> ast.Module:
    """Return the tree of a file. Raises SyntaxError, OSError or ValueError."""
    return ast.parse(importlib.util.decode_source(file.read_bytes()), str(file))


def may_have(tree: ast.Module, attribute: str) -> bool:
    """Return whether a file binds a name at its top level, or in a way that cannot be read off it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return True
        if any(getattr(node, key, None) in _OWN_WAYS for key in ("id", "attr", "name")):
            return True
        if isinstance(node, ast.Global) and attribute in node.names:
            return True
    return attribute in set(bound(tree.body)) or attribute.startswith("__")


def bound(body: list[ast.stmt]) -> Iterator[str]:
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
                yield from bound([child])


def lacks(file: Path, attribute: str) -> bool:
    """Return whether it can be seen that the module in a file has no such name, nor its package a part of that name."""
    try:
        inside = file.name == "__init__.py" and any(file.parent.glob(f"{attribute}*"))
        return not inside and not may_have(parsed(file), attribute)
    except (SyntaxError, OSError, ValueError):
        return False  # it is to be imported, which says more


def mentions(folder: Path, word: str) -> bool:
    """Return whether a package's own files or the stubs of its compiled parts have a word."""
    sought = re.compile(rb"\b" + re.escape(word.encode()) + rb"\b")
    files = [*folder.glob("*.py"), *folder.glob("*.pyi"), *folder.glob("*/*.pyi")]
    return any(sought.search(file.read_bytes()) for file in files)
