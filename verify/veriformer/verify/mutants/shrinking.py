"""The smallest counterexample of a mutant: how many numbers a person has to look at, and whether its script runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.mutants.cell import Cell
from veriformer.verify.targets.loading import load


def with_smallest(cells: Sequence[Cell], seed: str) -> list[Cell]:
    """Return the cells, with the smallest counterexample added to the first killing one that has any.

    A requirement that is judged over a whole row has none.
    """
    for cell in sorted((cell for cell in cells if cell.killed), key=lambda cell: cell.examples):
        found = _smallest(cell, seed)
        if found.scalars is not None:
            return [found if other is cell else other for other in cells]
    return list(cells)


def _smallest(cell: Cell, seed: str) -> Cell:
    check = next(check for check in checks() if check.requirement.slug == cell.requirement)
    target = load(f"{cell.family}:{cell.member}")
    example = run_check(CheckRun(check, cell.dtype), target, PROFILES["quick"], seed, {}).counterexample
    if example is None or example.script is None:
        return cell
    # From the standard input, since a script may be longer than the system lets an argument be.
    ended = subprocess.run([sys.executable, "-"], input=example.script, text=True, capture_output=True, check=False)
    return replace(cell, scalars=example.scalars, script_status=ended.returncode)
