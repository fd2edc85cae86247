"""Rows that failed when a target was verified last: kept in the working directory, as proofs are."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from veriformer.verify.results import VIOLATIONS, Result, Results, Status, read

Rows = list[tuple[str, str]]
"""Rows by requirement and dtype."""


def failed(result: Result) -> bool:
    """Return whether a row's status is a failure of the target, or of the suite."""
    return result.status in VIOLATIONS or result.status is Status.HARNESS_ERROR


def known(target: str, json_file: Path | None = None) -> Rows:
    """Return the rows of a target that failed last, from an earlier results file where nothing else is known."""
    remembered = _remembered()
    if target in remembered:
        return [(slug, dtype) for slug, dtype in remembered[target]]
    with contextlib.suppress(OSError, ValueError):
        earlier = read(json_file) if json_file is not None else None
        if earlier is not None and earlier.implementation.get("target") == target:
            return _failing(earlier.results)
    return []


def remember(target: str, found: Results) -> None:
    """Store which rows of a run failed; rows that did not run keep their stored status."""
    ran = {(row.requirement, str(row.dtype)) for row in found.results}
    kept = [row for row in known(target) if row not in ran]
    everything = _remembered() | {target: [list(row) for row in (*kept, *_failing(found.results))]}
    file = _file()
    with contextlib.suppress(OSError):  # a folder that cannot be written costs no run
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}")
        partial.write_text(json.dumps(everything, indent=1), encoding="utf-8")
        partial.replace(file)


def _failing(results: Iterable[Result]) -> Rows:
    return [(row.requirement, str(row.dtype)) for row in results if failed(row)]


def _file() -> Path:
    return Path(os.environ.get("VERIFORMER_CACHE", ".veriformer")) / "last_failed.json"


def _remembered() -> dict[str, list[list[str]]]:
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(_file().read_text(encoding="utf-8"))
        return kept if isinstance(kept, dict) else {}
    return {}
