"""The kill matrix on the workers of a Dask scheduler: one item a member."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from veriformer.cluster.controller import Controller
from veriformer.cluster.session import Item, Outcome, Session
from veriformer.cluster.versions import versions
from veriformer.verify.mutants.cell import Cell
from veriformer.verify.mutants.matrix import MATRIX_PROFILE, KillMatrix
from veriformer.verify.mutants.mutation_run import run_member

_LIMIT_S = 1800.0
"""A member is run on a few hundred rows, each of which ends itself; this ends one that hangs in native code."""


class Members:
    """Runs members where it is made; an item is the name of one."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        torch.set_num_threads(1)
        self.seed, self.shrink = payload["seed"], payload["shrink"]

    def run(self, item: str, extra: Any) -> list[dict[str, Any]]:
        """Its cells."""
        return [asdict(cell) for cell in run_member(item, self.seed, shrink=self.shrink)]


def kill_matrix(
    names: Sequence[str],
    scheduler: str,
    *,
    seed: str,
    tell: Callable[[str, list[Cell]], None],
    shrink: bool,
    say: Callable[[str], None],
) -> tuple[KillMatrix, bool]:
    """Run members by name over the workers of a scheduler. One whose process ended, or failed, has no cells.

    Returns the matrix and whether the run was interrupted.
    """
    found: dict[str, list[Cell]] = {}

    def receive(item: Item, outcome: Outcome) -> None:
        if outcome.value is None:
            say(f"{item.name}: {outcome.error or 'the process that ran it ended with it'}")
            return
        found[item.name] = [Cell(**cell) for cell in outcome.value]
        tell(item.name, found[item.name])

    payload = {"seed": seed, "shrink": shrink}
    session = Session(work=f"{__name__}:Members", payload=payload, versions=versions())
    interrupted = False
    try:
        with Controller(scheduler, session, say=say) as side:
            say(f"dashboard {side.dashboard}")
            side.run([Item(name=name, limit_s=_LIMIT_S) for name in names], receive)
    except KeyboardInterrupt:
        interrupted = True
    matrix = KillMatrix(MATRIX_PROFILE, seed, tuple(cell for name in names for cell in found.get(name, [])))
    return matrix, interrupted
