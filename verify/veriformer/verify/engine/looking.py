"""The process that probes a target. It loads the target first: where that raises, PyTorch is never imported."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from veriformer.verify.engine.look import GO, Asked
from veriformer.verify.judging import isolation
from veriformer.verify.results.foreign import writable
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.locating import locate
from veriformer.verify.targets.lookup import split_target


def main(spec: str, file: str) -> int:
    """Load the target, write its description into the file, and then the domain of each operation.

    The suite is imported between the two, as if the target had not been. The file is made as soon as the target imports
    PyTorch.
    """
    words = _take_input()
    if words.readline() != GO:
        return 2
    if _hides_modules(spec):
        from veriformer.verify.engine import probing
    before = [*sys.path]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _announce_import(Path(file)):
                found, loader = locate(spec)
            Path(file).write_text("{}\n", encoding="utf-8")
            with _undisturbed(before):
                from veriformer.verify.engine import probing
            asked = Asked(**json.loads(words.readline()))
            target = probing.describe_located(found, loader, spec, asked, caught, Path(file))
        except TargetError as error:
            print(writable(str(error)).replace("\n", " "), file=sys.stderr)
            return 2
    probing.find_out(target, json.loads(words.readline() or "[]"), asked, Path(file))
    return 0


def _take_input() -> TextIO:
    """Return standard input as a file of its own, and leave an empty one: a target may ask for input."""
    words = os.fdopen(os.dup(0), encoding="utf-8")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    return words


@contextlib.contextmanager
def _announce_import(file: Path) -> Iterator[None]:
    """Make the file as soon as PyTorch is imported within the context."""

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            """Find nothing."""
            if name == "torch":
                file.touch()

    sys.meta_path.insert(0, Finder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a target may have removed it
            sys.meta_path.remove(Finder)


def _hides_modules(spec: str) -> bool:
    """Return whether a name beside the target is that of a module elsewhere, which the suite may want to import."""
    place = Path(split_target(spec)[0])
    folder = place.resolve().parent if place.is_file() else Path.cwd()
    others = [path for path in sys.path if Path(path or ".").resolve() != folder]
    return bool(_names([folder]) & (sys.stdlib_module_names | _names(others)))


def _names(folders: list[Path] | list[str]) -> set[str]:
    """Return the names by which something in these folders might be imported."""
    found: set[str] = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            entries = [one for one in os.scandir(folder or ".") if one.is_dir() or one.name.endswith(".py")]
            found |= {one.name.removesuffix(".py") for one in entries}
    return found - {"__pycache__"}


@contextlib.contextmanager
def _undisturbed(path: list[str]) -> Iterator[None]:
    """Import by this path of searches and with no warning made an error, and afterwards by what the target has set."""
    present = [*sys.path]
    sys.path[:] = path
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        sys.path[:] = present


if __name__ == "__main__":
    isolation.run_and_leave(lambda: main(*sys.argv[1:]))
