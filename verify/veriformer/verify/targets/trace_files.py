"""Which files are definitions and solutions of flashinfer-bench, and where a solution's definition lies.

A definition has a reference (``run``), and the shapes and dtypes of what it takes. A solution has the files of a
kernel, and the name of the definition that it solves. Both are JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from veriformer.verify.targets.lookup import SOLUTION

ABOVE = 6
"""So many folders above a solution are searched for the definition that it names."""


def is_trace(path: Path) -> bool:
    """Whether a file is read as one of these."""
    return path.suffix == ".json"


def definition_of(path: Path) -> Path | None:
    """The file of the definition that a solution names; None where a file is no solution, or that is not found."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if is_trace(path) and path.is_file() else {}
    except ValueError:
        return None
    if not isinstance(found, dict) or not found.keys() >= SOLUTION:
        return None
    return file_of(str(found["definition"]), path)


def file_of(name: str, path: Path) -> Path | None:
    """The definition of that name, from the folders ``definitions`` around a solution or from beside it."""
    for folder in [*path.resolve().parents][:ABOVE]:
        beside = [folder / f"{name}.json"]
        for file in [*beside, *sorted((folder / "definitions").rglob(f"{name}.json"))]:
            if file.is_file() and file != path.resolve():
                found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
                if {"reference", "inputs", "outputs"} <= found.keys():
                    return file
    return None
