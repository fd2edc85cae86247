"""The files that have to travel for Python code that is not installed to be imported on another machine."""

from __future__ import annotations

import contextlib
import modulefinder
from collections.abc import Sequence
from pathlib import Path


def sources(place: str, folder: Path | None = None) -> dict[str, bytes]:
    """Return the Python files of a file or dotted module, by path relative to the folder from which it is loaded.

    A file comes with whatever it imports from beside it, found in its source without running it; a dotted module that
    lies in the working folder (or the one given) likewise; what is installed has none. Files that are opened or
    imported by a computed name are not seen.
    """
    if place.endswith(".py"):
        file = Path(place).resolve()
        return _reached(file.parent, [file]) if file.is_file() else {}
    root = (folder or Path.cwd()).resolve()
    return _reached(root, _module_files(root, place)) if place else {}


def read(paths: Sequence[Path]) -> dict[str, bytes]:
    """Read files and folders, by name: a file's own, and below a folder's name its content."""
    found = {}
    for path in map(Path.resolve, paths):
        files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.is_file()]
        found.update({file.relative_to(path.parent).as_posix(): file.read_bytes() for file in files})
    return found


def _module_files(root: Path, dotted: str) -> Sequence[Path]:
    """Return the file of a dotted module below a folder, and the ``__init__.py`` of its packages."""
    parts = dotted.split(".")
    packages = [root.joinpath(*parts[:n], "__init__.py") for n in range(1, len(parts) + 1)]
    files = [*packages, root.joinpath(*parts).with_suffix(".py")] if all(parts) else []
    return [file for file in files if file.is_file()]


def _reached(root: Path, files: Sequence[Path]) -> dict[str, bytes]:
    finder = modulefinder.ModuleFinder(path=[str(root)])
    for file in files:
        with contextlib.suppress(SyntaxError, ImportError):  # of a file that cannot be loaded here or there
            name = ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            finder.import_hook(name) if "." in name or file.name == "__init__.py" else finder.load_file(str(file))
    named = (getattr(module, "__file__", None) for module in finder.modules.values())
    found = {*files, *(Path(str(file)) for file in named if file)}
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in sorted(found) if file.is_relative_to(root)}
