"""The kill matrix, run elsewhere: mutants, variants and sabotage adapters, an item for each of them.

The smallest counterexample of a mutant tells how many numbers a person has to look at, and whether its script runs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

import torch

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.mutants import MUTANTS, SABOTAGES, VARIANTS, Mutant
from veriformer.verify.mutants.cell import Cell
from veriformer.verify.mutants.generic import generic_mutants, named
from veriformer.verify.mutants.matrix import MATRIX_PROFILE, KillMatrix, Member, cells, family
from veriformer.verify.targets.loading import load
from veriformer.workers.processes import Processes
from veriformer.workers.session import Executor, Item, Outcome, Session
from veriformer.workers.versions import versions

_LIMIT_S = 1800.0
"""A member is run on a few hundred rows, each of which ends itself; this ends one that hangs in native code."""

_MEMBERS: tuple[Member, ...] = (*MUTANTS, *VARIANTS, *SABOTAGES)
EVERYONE = {f"{family(member)}:{member.identifier}": member for member in _MEMBERS}
"""Every member of the matrix by its name, such as ``mutant:GQA-01``, but for the generic ones."""


def generic() -> dict[str, Member]:
    """Return the generic mutants by their names."""
    return {f"generic:{mutant.identifier}": mutant for mutant in generic_mutants()}


def run_member(name: str, seed: str, *, shrink: bool) -> list[Cell]:
    """Return the cells of one member by its name."""
    member = EVERYONE.get(name) or named(name.partition(":")[2])
    found = cells(member, MATRIX_PROFILE, seed)
    return with_smallest(found, seed) if shrink and isinstance(member, Mutant) else found


class Members:
    """Runs members where it is made; an item is the name of one."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        torch.set_num_threads(1)
        self.seed, self.shrink = payload["seed"], payload["shrink"]

    def run(self, item: str, extra: Any) -> list[dict[str, Any]]:
        """Return the cells of a mutant."""
        return [asdict(cell) for cell in run_member(item, self.seed, shrink=self.shrink)]


def kill_matrix(
    names: Sequence[str],
    *,
    jobs: int,
    seed: str,
    tell: Callable[[str, list[Cell]], None],
    say: Callable[[str], None],
    scheduler: str | None = None,
    shrink: bool = False,
) -> tuple[KillMatrix, bool]:
    """Run members by name over processes of this machine, or the workers of a scheduler.

    shrink: seek the smallest counterexample of each killed mutant, and run its script. A member whose process ended, or
    failed, has no cells. Return the matrix and whether the run was interrupted.
    """
    found: dict[str, list[Cell]] = {}

    def receive(item: Item, outcome: Outcome) -> None:
        if outcome.value is None:
            say(f"{item.name}: {outcome.error or 'the process that ran it ended with it'}")
            return
        found[item.name] = [Cell(**cell) for cell in outcome.value]
        tell(item.name, found[item.name])

    session = Session(work=f"{__name__}:Members", payload={"seed": seed, "shrink": shrink}, versions=versions())
    interrupted = False
    try:
        with _executor(session, scheduler, jobs, say) as side:
            if side.dashboard:
                say(f"dashboard {side.dashboard}")
            side.run([Item(name=name, limit_s=_LIMIT_S) for name in names], receive)
    except KeyboardInterrupt:
        interrupted = True
    matrix = KillMatrix(MATRIX_PROFILE, seed, tuple(cell for name in names for cell in found.get(name, [])))
    return matrix, interrupted


def _executor(
    session: Session, scheduler: str | None, jobs: int, say: Callable[[str], None]
) -> AbstractContextManager[Executor]:
    if scheduler is None:
        return Processes(session, jobs)
    from veriformer.workers.controller import Controller  # which needs Dask

    return Controller(scheduler, session, say=say)


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
