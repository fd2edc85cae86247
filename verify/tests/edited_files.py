"""Not a test: files that differ from others by edits, each of which puts ``new`` in the place of ``old``."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

Edit = Mapping[str, str]


def edited(file: Path, edits: Iterable[Edit]) -> str:
    """Return the text of a file after edits; ValueError where an ``old`` is not there exactly once."""
    text = file.read_text(encoding="utf-8")
    for edit in edits:
        times = text.count(edit["old"])
        if times != 1:
            raise ValueError(f"{file}: expected once, got {times} times: {edit['old']!r}")
        text = text.replace(edit["old"], edit["new"])
    return text


def written(name: str, file: Path, edits: Iterable[Edit]) -> Path:
    """Return the path of NAME.py, which holds a file after edits and is written once in a process."""
    path = _folder() / file.parent.name / f"{name}.py"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(edited(file, edits), encoding="utf-8")
    return path


@functools.cache
def _folder() -> Path:
    """Make the folder of this process, which is removed as it ends."""
    folder = Path(tempfile.mkdtemp(prefix="edited-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
