"""Not a test: files that differ from others by edits, each of which puts ``new`` in the place of ``old``."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Edit = Mapping[str, str]


def edited(file: Path, edits: Iterable[Edit]) -> str:
    """Return the text of a file after edits; ValueError where an ``old`` is not there exactly once."""
    return apply_edits(file.read_text(encoding="utf-8"), edits, str(file))


def apply_edits(text: str, edits: Iterable[Edit], where: str) -> str:
    """Return a text after edits; ValueError where an ``old`` is not there exactly once."""
    for edit in edits:
        times = text.count(edit["old"])
        if times != 1:
            raise ValueError(f"{where}: expected once, got {times} times: {edit['old']!r}")
        text = text.replace(edit["old"], edit["new"])
    return text


def written(name: str, file: Path, edits: Iterable[Edit]) -> Path:
    """Return the path of NAME.py, which holds a file after edits and is written once in a process."""
    return write_text(name, file.parent.name, lambda: edited(file, edits))


def write_text(name: str, folder: str, text: Callable[[], str]) -> Path:
    """Return the path of NAME.py in this folder of the process, written where it is not there."""
    path = _folder() / folder / f"{name}.py"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text(), encoding="utf-8")
    return path


@functools.cache
def _folder() -> Path:
    """Make the folder of this process, which is removed as it ends."""
    folder = Path(tempfile.mkdtemp(prefix="edited-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
