"""The files of a target that is not installed: what has to travel for it to be loaded on another machine."""

from __future__ import annotations

from pathlib import Path

from veriformer.verify import targets
from veriformer.workers import files


def place_of(spec: str) -> str:
    """The file or dotted module of a target, without the attribute; empty for a name that ships with the suite."""
    if targets.find(spec) is not None:
        return ""
    return spec if Path(spec).exists() else spec.partition(":")[0]


def sources(spec: str, folder: Path | None = None) -> dict[str, bytes]:
    """The Python files that a target consists of, by their path relative to the folder that it is loaded from."""
    return files.sources(place_of(spec), folder)
