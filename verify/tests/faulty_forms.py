"""Not a test: files of code as people write it in `forms/`, and those with the faults of `forms/faulty.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

from tests.edited_files import Edit, written

FOLDER = Path(__file__).with_name("forms")


@functools.cache
def faulty_forms() -> dict[str, list[Edit]]:
    """Return the edits of each faulty file, by its name."""
    return tomllib.loads((FOLDER / "faulty.toml").read_text(encoding="utf-8"))


def form_file(name: str) -> Path:
    """Return the path of a file; a faulty one is written from the correct one, where it is kept as its edits."""
    if name not in faulty_forms():
        return FOLDER / f"{name}.py"
    correct, _, _ = name.partition("_faulty")
    return written(name, FOLDER / f"{correct}.py", faulty_forms()[name])
