"""The journal of a run: one line per finished row, written as it comes, so that stopping loses nothing.

A JSON Lines file. The first line holds the plan; every other one a result. A line cut off by a sudden end is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from veriformer.verify.engine.extent import Seen, together
from veriformer.verify.engine.plan import Plan
from veriformer.verify.results import Result, Status, json_safe


class JournalError(ValueError):
    """The file to resume from is not a journal, or belongs to another run."""


class Journal:
    """An append-only file of results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._results: dict[str, Result] = {}
        self._changes: dict[str, set[str]] = {}
        self._seen_of: dict[str, Seen] = {}
        self._offset = 0
        self._seen = False

    def begin(self, plan: Plan) -> None:
        """Start a new journal for a plan."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("")
        self._results, self._changes, self._offset = {}, {}, 0
        self._seen_of = {}
        self._append({"plan": asdict(plan)})

    def resume(self, plan: Plan) -> None:
        """Take up the journal of an earlier run. Raises JournalError where it belongs to another plan."""
        lines = self.check(plan)
        self.begin(plan)
        for line in lines[1:]:
            self._append(line)

    def check(self, plan: Plan, *, asked: bool = False) -> list[dict[str, Any]]:
        """Return the lines of an earlier run. Raises JournalError where they are none, or belong to another plan.

        asked: compare no more of the plans than what the command line says.
        """
        self._offset = 0
        lines = list(self._lines())
        if not lines or "plan" not in lines[0]:
            raise JournalError(
                f"{self.path}: expected the journal of a run that was stopped (FILE.partial, beside its --json FILE); "
                "a run that ended leaves none"
            )
        differences = plan.differences(Plan.from_dict(lines[0]["plan"]), asked=asked)
        if differences:
            where = "; ".join(differences)
            raise JournalError(f"{self.path} belongs to another run: {where}. Repeat its arguments, or start anew")
        return lines

    def add(self, result: Result) -> None:
        """Write one finished row."""
        self._append(json_safe(result.to_dict()))

    def results(self) -> dict[str, Result]:
        """Return every finished row by its key; the latest entry counts."""
        self._read()
        return dict(self._results)

    def statuses(self) -> dict[str, Status]:
        """Return the status of every finished row by its key."""
        return {key: row.status for key, row in self.results().items()}

    def change(self, changes: Mapping[str, Sequence[str]]) -> None:
        """Record the global state that a target has changed, by operation."""
        self._append({"changes": {operation: list(what) for operation, what in changes.items()}})

    def changes(self) -> dict[str, list[str]]:
        """Return the recorded changes of global state, sorted, by operation."""
        self._read()
        return {operation: sorted(self._changes[operation]) for operation in sorted(self._changes)}

    def see(self, seen: Mapping[str, Seen]) -> None:
        """Record the coverage of a target's code, by operation."""
        self._append({"seen": json_safe(seen)})

    def seen(self) -> dict[str, Seen]:
        """Return the recorded coverage of the target's code, by operation."""
        self._read()
        return dict(self._seen_of)

    def _read(self) -> None:
        """Read the lines written since the last call; only their content is kept."""
        for line in self._lines():
            if "requirement" in line:
                row = Result.from_dict(line)
                self._results[row.key] = row
            if "seen" in line:
                self._seen_of = together([self._seen_of, line["seen"]])
            for operation, what in line.get("changes", {}).items():
                self._changes.setdefault(operation, set()).update(what)

    def _append(self, line: dict[str, Any]) -> None:
        # One write to a descriptor opened for appending: several processes may write without mixing their lines.
        text = json.dumps(line, allow_nan=False) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            if not self._seen:
                raise JournalError(f"{self.path}: no such file to resume from")
            self._offset = 0  # a target has removed it; what is known stays known, and what comes starts it anew
            return
        with self.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self._offset:
                self._offset = 0
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):  # still being written, or cut off
                    return
                self._offset, self._seen = self._offset + len(line), True
                parsed = _parse(line)
                if parsed is not None:
                    yield parsed


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None
