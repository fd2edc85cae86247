"""Measure the limits of accuracy in half precision over every correct implementation: writes their table anew.

python -m veriformer.verify.mutants.accuracy_calibration [OPERATION…]
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.families import accuracy, accuracy_limits
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.judge import RunStatistics
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.mutants.correct_variants import VARIANTS
from veriformer.verify.targets.loading import load

SEEDS = 4
EXAMPLES = 8
SHIPPED = ("impl:reference", "impl:sdpa")
"""Of the targets that ship, those without known failures in halves, as PyTorch itself has some."""

Found = dict[str, list[accuracy.Summary]]
"""By quantity: what every run came to."""


def targets(operation: str) -> list[str]:
    """Return every implementation of an operation that is known to be right."""
    return [*SHIPPED, *(f"variant:{v.identifier}" for v in VARIANTS if operation in v.operations)]


def runs(check: Check, target: str) -> Iterator[tuple[str, Found]]:
    """Yield the summaries of runs with several seeds, by dtype and quantity."""
    profile = Profile(name="calibration", examples=EXAMPLES, shrinks=0, timeout_s=120)
    implementation = load(target)
    for dtype in check.dtypes:
        found: Found = defaultdict(list)

        def keep(statistics: RunStatistics, found: Found = found) -> None:
            for one in accuracy.summed(statistics):
                found[one.quantity].append(one)

        measuring = replace(check, finish=keep, effort=1.0)
        for seed in range(SEEDS):
            run_check(CheckRun(measuring, dtype), implementation, profile, f"calibration {seed}", {})
        yield dtype, found


def calibrate(check: Check) -> dict[str, dict[str, float]]:
    """Return the entries of the table for one operation."""
    errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    alone: dict[str, float] = defaultdict(lambda: 1.0)
    biases: dict[str, float] = defaultdict(lambda: 1.0)
    for target in targets(check.operation):
        for dtype, found in runs(check, target):
            for quantity, summaries in found.items():
                logs = np.log([max(one.together, 1e-3) for one in summaries])
                errors[quantity].append((float(logs.mean()), float(logs.std(ddof=1))))
                alone[quantity] = max(alone[quantity], *(one.alone for one in summaries))
                biases[quantity] = max(biases[quantity], *(one.leaning for one in summaries))
                told = (errors[quantity][-1], max(one.alone for one in summaries))
                print(check.operation, target, dtype, quantity, *told, biases[quantity], flush=True)
    return {
        quantity: {
            "error": round(max(1.0, *(math.exp(mean) for mean, _ in found)), 3),
            "scatter": round(max(deviation for _, deviation in found), 3),
            "one": round(alone[quantity], 2),
            "bias": round(biases[quantity], 2),
            "examples": EXAMPLES,
        }
        for quantity, found in errors.items()
    }


def main(chosen: list[str]) -> None:
    """Write the entries of these operations, or of all, into the table."""
    torch.set_num_threads(1)
    path = Path(accuracy_limits.__file__).with_name(accuracy_limits.TABLE)
    for check in accuracy.CHECKS:
        if not chosen or check.operation in chosen:
            found = calibrate(check)
            table = json.loads(path.read_text(encoding="utf-8"))  # another process may have written meanwhile
            table[check.operation] = found
            path.write_text(json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
