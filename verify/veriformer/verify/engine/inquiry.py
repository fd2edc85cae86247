"""Findings of a run, in processes of their own: a target that ends or hangs one of them loses its part of them only."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from veriformer.verify.engine import process_environment
from veriformer.verify.engine.plan import Plan
from veriformer.verify.findings import everything
from veriformer.verify.judging import isolation
from veriformer.verify.judging.stopwatch import kept_waiting
from veriformer.verify.results import Result, Results, json_safe
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.loading import load

SHARE = 0.5
"""Of the time of the rows, the most that findings may take beside it."""

LEAST_S = 30.0
"""Time that findings may take however short the run was: loading PyTorch is most of it."""

_WAIT = 4.0
"""Multiple of its own time that a process may last, less its waits for a processor: a target may sleep, or hang."""


def add_findings(found: Results, plan: Plan, *, jobs: int) -> bool:
    """Reduce the failing rows of a run to findings, over so many processes; nothing is done where none fails.

    Return whether the person ended the search: the causes that were known by then are told, and other rows by their
    requirements.
    """
    rows = everything.by_operation(found.results)
    told: dict[str, list[Finding]] = {}
    interrupted = False
    if rows:
        with tempfile.TemporaryDirectory(prefix="veriformer-") as folder:
            told, interrupted = _told(rows, plan, max(LEAST_S, SHARE * found.duration_s), jobs, Path(folder))
    store_findings(found, told)
    return interrupted


def store_findings(found: Results, told: everything.Told) -> None:
    """Put the findings into the results, and into every row the one that explains it; rows of operations whose causes
    were not looked for are told by requirement."""
    found.domain = _narrowed(found)
    where = found.implementation.get("where", {})
    found.findings = [
        replace(one, where=next((where[name] for name in one.operation.split(", ") if name in where), None))
        for one in everything.gathered(found, told)
    ]
    found.results = everything.with_findings(found.results, found.findings, found.weighs)


def _narrowed(found: Results) -> dict[str, Domain]:
    """Return the domains without what rows found to be refused."""
    domains = dict(found.domain)
    for row in found.results:
        known = domains.get(row.operation)
        if row.refused and known is not None:
            provided = tuple(name for name in known.provided if name not in row.refused)
            domains[row.operation] = replace(known, provided=provided, refused={**row.refused, **known.refused})
    return domains


def _told(
    rows: everything.ByOperation, plan: Plan, seconds: float, jobs: int, folder: Path
) -> tuple[dict[str, list[Finding]], bool]:
    """Look for causes; return them by operation, and whether the person ended the search."""
    plan.save(folder / "plan.json")
    parts = [part for part in _spread(rows, jobs) if part]
    processes = []
    for number, part in enumerate(parts):
        listed = [json_safe(result.to_dict()) for operation in part for result in rows[operation]]
        (folder / f"{number}.rows").write_text(json.dumps({"seconds": seconds, "rows": listed}))
        command = [sys.executable, "-m", __name__, str(folder), str(number)]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=process_environment.of_worker()
        )
        processes.append(process)
    interrupted = _waited(processes, _WAIT * seconds)
    found = {key: value for number in range(len(parts)) for key, value in _read(folder / f"{number}.found").items()}
    return found, interrupted


def _waited(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> bool:
    """Wait so long for processes and end those that are left; return whether the person cut it short."""
    until = time.monotonic() + seconds
    try:
        for process in processes:
            _wait(process, until)
    except KeyboardInterrupt:
        return True
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return False


def _wait(process: subprocess.Popen[bytes], until: float) -> None:
    """Wait for a process until a time by the clock, and as much longer as it had no processor."""
    while (left := until + kept_waiting(process.pid) - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(left)
            return


def _spread(rows: everything.ByOperation, jobs: int) -> list[list[str]]:
    """The operations in so many parts of about as many rows, those with most first."""
    parts: list[list[str]] = [[] for _ in range(jobs)]
    for operation in sorted(rows, key=lambda name: len(rows[name]), reverse=True):
        min(parts, key=lambda part: sum(len(rows[name]) for name in part)).append(operation)
    return parts


def _read(path: Path) -> dict[str, list[Finding]]:
    """What a process has written, perhaps before it ended."""
    lines = path.read_text().split("\n")[:-1] if path.is_file() else []
    entries = [json.loads(line) for line in lines]
    return {entry["operation"]: [Finding.from_dict(one) for one in entry["findings"]] for entry in entries}


def main(folder: Path, number: str) -> int:
    """Look into the rows of one part, and write what is found, an operation a line."""
    plan = Plan.restore(folder / "plan.json")
    part = json.loads((folder / f"{number}.rows").read_text())
    results = [Result.from_dict(row) for row in part["rows"]]
    torch.set_num_threads(1)
    if plan.device == "cpu":
        isolation.limit_memory(plan.effort.memory_gib)
    with (folder / f"{number}.found").open("a") as file:

        def tell(operation: str, findings: list[Finding]) -> None:
            entry: dict[str, object] = {"operation": operation, "findings": [one.to_dict() for one in findings]}
            file.write(json.dumps(json_safe(entry)) + "\n")
            file.flush()

        target = plan.within(load(plan.target, plan.recognised))
        everything.inquire(everything.by_operation(results), target, plan.seed, part["seconds"], tell)
    return 0


if __name__ == "__main__":
    isolation.run_and_leave(lambda: main(Path(sys.argv[1]), sys.argv[2]))
