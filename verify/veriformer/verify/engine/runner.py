"""Row runner of a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.engine.advice import as_advice
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.extent import Seen, seen_of
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.suggestion import suggested
from veriformer.verify.judging import global_state, isolation
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.shipping import Shipped
from veriformer.verify.targets.target import Target
from veriformer.verify.targets.watch import OF_A_ROW


def confine(plan: Plan) -> None:
    """Leave the other cores to other processes, and the machine its memory."""
    torch.set_num_threads(1)
    if plan.device == "cpu":
        isolation.limit_memory(plan.effort.memory_gib)


def loaded(plan: Plan, shipped: Shipped) -> Target:
    """The plan's target within its domain; what loading it changes of the process is noted in it, and undone."""
    changes: list[str] = []
    with global_state.guarded(global_state.OF_ROWS, changes.append), global_state.streams():
        target = plan.within(shipped.load(plan.recognised))
    if changes:
        target.changes["loading"] = changes
    return target


@dataclass
class Runner:
    """Runs rows of a plan on its target. may_kill: the process is ours, and may end itself where a row hangs."""

    plan: Plan
    target: Target
    may_kill: bool
    _noted: dict[str, list[str]] = field(default_factory=dict)
    _told: dict[str, Seen] = field(default_factory=dict)

    def run(self, row: CheckRun, finished: Mapping[str, Status]) -> Result:
        """The result of a row. finished: the statuses of rows that were run before, by key."""
        plan = self.plan
        stored = plan.stored.get(row.key)
        self.target.claims.asked.clear()
        if self.target.watch is not None:
            self.target.watch.begin(OF_A_ROW)
        result = run_check(row, self.target, plan.effort, plan.seed, finished, may_kill=self.may_kill, stored=stored)
        result = suggested(row, self.target, result, plan.seed)
        if plan.strict:
            return result
        return as_advice(result, recognised=bool(self.target.recognised), fail_on=Weight(plan.fail_on))

    def seen(self) -> dict[str, Seen]:
        """Return the coverage of the target's code by operation, where it grew since the last call."""
        watch = self.target.watch
        found = {name: seen_of(watch, name) for name in watch.changed()} if watch is not None else {}
        new = {name: seen for name, seen in found.items() if self._told.get(name) != seen}
        self._told |= new
        return new

    def changes(self) -> dict[str, list[str]]:
        """Return the target's changes to the process's state, by operation; empty where they were returned before."""
        changes = {operation: list(what) for operation, what in self.target.changes.items()}
        if changes == self._noted:
            return {}
        self._noted = changes
        return changes


def died(row: CheckRun, seconds: float, timeout_s: float) -> Result:
    """The result of a row whose process is gone after so many seconds: a timeout if its time was over, else a crash."""
    if seconds >= 2 * timeout_s:
        return row.result(Status.TIMEOUT, message=f"still running after {2 * timeout_s:g} s; its process was ended")
    return row.result(Status.CRASH, message="the process that ran this row ended with it")
