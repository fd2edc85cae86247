"""The jobs that run other people's code, each in a process of its own; values travel by files."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from veriformer.verify.comparison import candidates, preparation, references
from veriformer.verify.targets.error import TargetError

_KINDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "prepare": preparation.prepare,
    "reference": references.evaluate,
    "candidate": candidates.run,
}


def run(job: dict[str, Any]) -> int:
    """Do a job and write what came of it into its folder. Gives the exit status of the process."""
    warnings.simplefilter("ignore")
    os.chdir(job["directory"])
    job["until"] = time.monotonic() + job["budget"]
    try:
        found = _KINDS[job["kind"]](job)
    except TargetError as error:
        found = {"unusable": str(error)}
    write_json(Path(job["out"]) / "found.json", found)
    return 0


def write_json(file: Path, found: dict[str, Any]) -> None:
    """Write it in one step, so that a process that ends meanwhile leaves no half of it."""
    half = file.with_suffix(".half")
    half.write_text(json.dumps(found), encoding="utf-8")
    half.replace(file)
