"""Measurement of the faults that a profile finds: ``python verify/tests/power/measure.py PROFILE FILE [NAME …]`` adds
them to a table."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import attention_faults  # noqa: F401  (registers them)
import fourth_faults  # noqa: F401
import more_faults  # noqa: F401
import operation_faults  # noqa: F401
import third_faults  # noqa: F401
import torch
from catalogue import FAULTS, NamedFault

from veriformer.verify.catalogue.selection import select
from veriformer.verify.contract import dtypes
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import CheckRun, plan
from veriformer.verify.results import Status
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.target import Target

FIRST = ("long", "chunks", "accuracy", "long_run", "gradient", "equation")
"""The checks that are run first: the table says who finds a fault, not who finds it first."""


def _last(row: CheckRun) -> int:
    name = row.check.requirement.slug.partition(".")[2]
    return FIRST.index(name) if name in FIRST else len(FIRST)


def found(fault: NamedFault, profile: str, seed: str = "slug") -> tuple[str, str]:
    """The status and the key of the first row that finds it, or of none; errors of the suite are told as such."""
    target = Target(f"power:{fault.name}", fault.target(), Claims(), None, "")
    errors = []
    for row in sorted(plan(select((fault.operation,)), dtypes.NAMES), key=_last):
        result = run_check(row, target, PROFILES[profile], seed, {})
        if result.status is Status.FAIL:
            return "killed", f"{row.key}: {result.message}"[:300]
        if result.status in (Status.HARNESS_ERROR, Status.TIMEOUT):
            errors.append(f"{row.key} {result.status}")
    return ("error", "; ".join(errors)) if errors else ("alive", "")


def main(profile: str, file: str, *names: str) -> None:
    torch.set_num_threads(1)
    path = Path(file)
    table = json.loads(path.read_text()) if path.exists() else {}
    for name in names or [name for name in FAULTS if name not in table]:
        started = time.process_time()
        status, row = found(FAULTS[name], profile)
        table[name] = {"status": status, "row": row, "seconds": round(time.process_time() - started, 1)}
        path.write_text(json.dumps(table, indent=1))
        print(status, name, table[name]["seconds"], row[:100], flush=True)
    print(sum(entry["status"] == "killed" for entry in table.values()), "of", len(table))


if __name__ == "__main__":
    main(*sys.argv[1:])
