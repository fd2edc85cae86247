"""Where the time of a verification goes: to examples, or to everything else.

The run is a process of its own, as a person starts it. What its rows say of themselves is time spent on examples; the
rest of what the workers had is start-up, collecting, and waiting for the last row.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


class RunError(RuntimeError):
    """The verification could not be run; the message is what it said."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Timing of one verification, from outside.

    wall_s: from start to end of the process. running_s: the part after everything was loaded, as the results say.
    rows: the result rows. jobs: how many workers it had.
    """

    target: str
    profile: str
    jobs: int
    wall_s: float
    running_s: float
    rows: Sequence[Mapping[str, Any]]

    @property
    def on_examples(self) -> float:
        """Return the share of the workers' time that rows spent on their examples, between 0 and 1."""
        return sum(row["seconds"] or 0 for row in self.rows) / (self.jobs * self.wall_s)

    def by_operation(self) -> list[tuple[str, int, int, float]]:
        """Return operation, rows, examples and seconds, by decreasing seconds."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.rows:
            found.setdefault(row["operation"], []).append(row)
        sums = [
            (name, len(rows), sum(r["examples"] or 0 for r in rows), sum(r["seconds"] or 0 for r in rows))
            for name, rows in found.items()
        ]
        return sorted(sums, key=lambda entry: -entry[3])


def measure(target: str, profile: str, jobs: int, only: Sequence[str] = ()) -> Profile:
    """Run ``veriformer verify`` on a target and time it. Raises RunError where it gives no results."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        words = [target, "--profile", profile, "--jobs", str(jobs), "--json", str(file)]
        words += [word for name in only for word in ("--only", name)]
        command = [sys.executable, "-m", "veriformer.verify", *words]
        clock = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - clock
        if not file.is_file():
            raise RunError(done.stderr.strip() or f"veriformer verify {target} ended with {done.returncode}")
        document = json.loads(file.read_text(encoding="utf-8"))
    return Profile(
        target=target,
        profile=profile,
        jobs=jobs,
        wall_s=wall,
        running_s=document["duration_s"],
        rows=document["results"],
    )


def show(profile: Profile, out: Console) -> None:
    """Print the operations by what they took, and the share of the time that went to examples."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("operation")
    for column in ("rows", "examples", "seconds", "ms per example"):
        table.add_column(column, justify="right")
    for name, rows, examples, seconds in profile.by_operation():
        each = f"{1000 * seconds / examples:.1f}" if examples else "·"
        table.add_row(name, str(rows), str(examples), f"{seconds:.1f}", each)
    out.print(table)
    out.print(
        f"{profile.target}: {profile.wall_s:.1f} s in all ({profile.profile}, {profile.jobs} workers), of which "
        f"{profile.wall_s - profile.running_s:.1f} s before the first row and after the last; "
        f"{profile.on_examples:.0%} of the workers' time went to examples",
        soft_wrap=True,
    )
