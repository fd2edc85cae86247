"""Files and lines of the functions and classes that a run judges."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

from veriformer.verify.recognition.candidates import find_candidate
from veriformer.verify.targets.target import Target

_OURS = Path(__file__).resolve().parents[1]


class Place(TypedDict):
    """Where a function begins. file: below the working directory where it is there, else absolute."""

    file: str
    line: int


def places(target: Target, operations: Iterable[str]) -> dict[str, Place]:
    """Return by operation where the code is that is judged as it; nothing of code without a Python file."""
    named = target.recognised.get("by_name", ())
    pins = {pin["operation"]: pin["name"] for pin in reversed(target.recognised.get("recognised", ()))}
    found = {}
    for operation in operations:
        if operation in pins and operation not in named:
            place = place_of(find_candidate(target.source, pins[operation]).thing)
        else:
            place = place_of(target.operation(operation))
        if place is not None:
            found[operation] = place
    return found


def place_of(thing: Any) -> Place | None:
    """Return the line where a function, a class or an object's class begins; None without a file of its own."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    try:
        plain = inspect.unwrap(thing)
        plain = plain if inspect.isroutine(plain) or inspect.isclass(plain) or inspect.ismodule(plain) else type(plain)
        file, (_, line) = inspect.getsourcefile(plain), inspect.getsourcelines(plain)
    except (TypeError, ValueError, OSError):  # a built-in, or made from text
        return None
    if file is None or Path(file).resolve().is_relative_to(_OURS):  # an adapter of ours stands for other code
        return None
    return {"file": relative_path(Path(file).resolve()), "line": max(1, line)}


def of_sender(found: dict[str, Place], target: str) -> dict[str, Place]:
    """Return the places that a worker found in its copy of a target's files, as they lie where they were sent from."""
    folder = Path(target.partition(":")[0]).resolve().parent
    there = {operation: folder / place["file"] for operation, place in found.items()}
    return {
        operation: {**place, "file": relative_path(there[operation])} if there[operation].is_file() else place
        for operation, place in found.items()
    }


def relative_path(path: Path) -> str:
    """Return a path below the working directory where it is there, else as it is."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()
