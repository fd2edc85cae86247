"""The files of a target that is not installed: what has to travel to another machine, and lines that load it there."""

from __future__ import annotations

from pathlib import Path

from veriformer.verify import targets
from veriformer.workers import files

_LOADING = '''\
import importlib.util
import os
import sys
from pathlib import Path


def target_file(recorded):
    """The file that VERIFORMER_TARGET names, the recorded one, or the like beside this script or above it."""
    if os.environ.get("VERIFORMER_TARGET"):
        return Path(os.environ["VERIFORMER_TARGET"]).resolve()
    parts = Path(recorded).parts[1:]
    tails = [Path(*parts[first:]) for first in range(len(parts))]
    folders = [Path.cwd(), *Path(globals().get("__file__", "script.py")).resolve().parents]
    places = [Path(recorded), *(folder / tail for folder in folders for tail in tails)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise SystemExit(f"{recorded} is not here: set VERIFORMER_TARGET to the file of the implementation")
    return found.resolve()


path = target_file(RECORDED)
sys.path.insert(0, str(path.parent))
spec = importlib.util.spec_from_file_location(path.stem, path)
BIND = importlib.util.module_from_spec(spec)
sys.modules.setdefault(path.stem, BIND)
spec.loader.exec_module(BIND)'''


def place_of(spec: str) -> str:
    """Return the file or dotted module of a target, without attribute; empty for a shipped name."""
    if targets.find(spec) is not None:
        return ""
    return spec if Path(spec).exists() else spec.partition(":")[0]


def sources(spec: str, folder: Path | None = None) -> dict[str, bytes]:
    """Return the Python files of a target, by their path relative to the folder from which it is loaded."""
    return files.sources(place_of(spec), folder)


def loading_lines(path: Path, attribute: str) -> str:
    """Return lines that bind ``target`` to the module in a file, or to an attribute of it."""
    name = "module" if attribute else "target"
    lines = _LOADING.replace("RECORDED", repr(str(path))).replace("BIND", name)
    return f"{lines}\ntarget = module.{attribute}" if attribute else lines
