"""The runs that a report is about: reading them, telling them apart, and writing them as one set."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriformer.spec.suggestion import files_beside, meant
from veriformer.verify.results import SCHEMA_NAME, Results, json_safe

SET_SCHEMA_NAME = "veriformer/results-set/1"


@dataclass(frozen=True)
class Run:
    """A run, with a label that no other run of the report has."""

    label: str
    results: Results

    @property
    def target(self) -> str:
        """Return the word the implementation was asked for by."""
        return str(self.results.implementation["target"])


def read_json(path: Path, expected: str) -> dict[str, Any]:
    """Return a JSON object. Raises ValueError that names the file and says what was expected of it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        close = meant(str(path), files_beside(str(path), "*.json"))
        raise ValueError(f"{path}: expected {expected}: no such file{close}") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected {expected}: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"{path}: expected {expected}, got a {type(document).__name__}")
    return document


def check_schema(path: Path, what: str, name: str, command: str) -> None:
    """Raise ValueError unless a file holds a document of that schema, with the command that writes one."""
    expected = f"{what} ({name}), as '{command}' writes it with --json"
    found = read_json(path, expected).get("schema")
    if found != name:
        raise ValueError(f"{path}: expected {expected}, got schema {found!r}")


def read_results(path: Path) -> list[Results]:
    """Read the runs of a results file, a set of them or a folder of either. Raises ValueError, which names the file."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        if not files:
            raise ValueError(f"{path}: expected a file of results or a folder of them, got a folder without any")
        return [run for file in files for run in read_results(file)]
    expected = f"a results file ({SCHEMA_NAME}), as 'veriformer verify' writes it with --json, or a set of them"
    document = read_json(path, expected)
    members = document.get("runs") if document.get("schema") == SET_SCHEMA_NAME else [document]
    if not isinstance(members, list) or not all(isinstance(member, dict) for member in members):
        raise ValueError(f"{path}: expected {expected}; its runs are no list of objects")
    try:
        return [Results.from_dict(member) for member in members]
    except ValueError as error:
        raise ValueError(f"{path}: expected {expected}: {error}") from error


def label(runs: Sequence[Results]) -> list[Run]:
    """Name each run after its target; where targets repeat add the device, then the profile and seed, then a number."""
    names = [str(run.implementation["target"]) for run in runs]
    names = _told_apart(names, [f"on {run.environment['device'] or 'cpu'}" for run in runs])
    names = _told_apart(names, [f"({run.profile}, seed {run.seed})" for run in runs])
    names = _told_apart(names, [f"#{number}" for number in range(1, len(runs) + 1)])
    return [Run(name, run) for name, run in zip(names, runs, strict=True)]


def _told_apart(names: Sequence[str], details: Sequence[str]) -> list[str]:
    times = Counter(names)
    return [f"{name} {detail}" if times[name] > 1 else name for name, detail in zip(names, details, strict=True)]


def as_set(runs: Iterable[Results]) -> Mapping[str, Any]:
    """Return all runs as one document."""
    document: dict[str, Any] = json_safe({"schema": SET_SCHEMA_NAME, "runs": [run.to_dict() for run in runs]})
    return document
