"""``veriformer.impl`` imported once more, with one module edited, beside the one that is there."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

PACKAGE = "veriformer.impl"


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


def rebuilt(name: str, tree: ast.Module) -> ModuleType:
    """Return the package with the module of that name made from this tree. Raises whatever importing it raises."""
    finder = _Edited(name, tree)
    with _set_aside():
        sys.meta_path.insert(0, finder)
        try:
            return importlib.import_module(PACKAGE)
        finally:
            sys.meta_path.remove(finder)


@contextmanager
def _set_aside() -> Iterator[None]:
    """Take the package out of the interpreter's tables for a while, and put it back as it was."""
    above = sys.modules[PACKAGE.partition(".")[0]]
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _belongs(name)}
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _belongs(name)]:
            del sys.modules[name]
        sys.modules.update(kept)
        above.impl = kept[PACKAGE]  # type: ignore[attr-defined]  # importing the package again has rebound it


def _belongs(name: str) -> bool:
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")
