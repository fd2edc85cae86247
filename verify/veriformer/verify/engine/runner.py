"""Row runner of a worker process.

A violation that is a known convention, consistently followed, is told with the claim under which it would be none;
nothing is excused by it: the row stays a violation until the target carries the claim, and is then judged by it.
Requirements of lesser weight, and calls refused by code that was not written for the contract, are reported as advice,
which violates and blocks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.extent import Seen, seen_of
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.profiles import PROFILES, Profile
from veriformer.verify.judging import global_state, isolation
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS, Claims
from veriformer.verify.targets.shipping import Shipped
from veriformer.verify.targets.target import Target
from veriformer.verify.targets.watch import OF_A_ROW

_PROFILE_OF_CLAIMS = replace(PROFILES["quick"], shrinks=0)
_FOLLOWED = (Status.PASS, Status.DEVIATION)

_RAISED = "raised "


def confine(plan: Plan) -> None:
    """Leave the other cores to other processes, and the machine its memory."""
    torch.set_num_threads(1)
    if plan.device == "cpu":
        isolation.limit_memory(plan.effort.memory_gib)


def loaded(plan: Plan, shipped: Shipped) -> Target:
    """Load the plan's target within its domain; changes of global state are recorded in the target and undone."""
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
        """Run a row and return its result. finished: the statuses of rows that ran before, by key."""
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
    """Return the result of a row whose process ended after so many seconds: a timeout past twice the limit, else a
    crash.
    """
    if seconds >= 2 * timeout_s:
        return row.result(Status.TIMEOUT, message=f"still running after {2 * timeout_s:g} s; its process was ended")
    return row.result(Status.CRASH, message="the process that ran this row ended with it")


def suggested(row: CheckRun, target: Target, result: Result, seed: str) -> Result:
    """Return the result of a failed row with the claim under which the row holds, where there is one.

    target: that of the row, whose claims record which conventions its examples have read. A claim is tried on at least
    twice as many examples as it took to fail: fewer may hold without it as well.
    """
    if result.status is not Status.FAIL:
        return result
    profile = replace(_PROFILE_OF_CLAIMS, examples=max(_PROFILE_OF_CLAIMS.examples, 2 * result.examples))
    for convention, value in _alternatives(target):
        claims = target.claims.claiming(convention, value)
        if all(
            _run_under_claims(one, target, claims, profile, seed).status in _FOLLOWED
            for one in (row, *_about(convention, row))
        ):
            message = result.message
            if convention in target.claims.conventions:  # a claim that is false is at fault, apart from the operation
                claimed = target.claims.convention(convention)
                message = f"CLAIMS say {convention} = {claimed!r}, and {value!r} is what is followed: {message}"
            return replace(result, message=message, suggestion={"convention": convention, "value": value})
    return result


def _alternatives(target: Target) -> Iterator[tuple[str, str]]:
    """Yield the other values of each convention that was read."""
    for convention in sorted(target.claims.asked):
        held = target.claims.convention(convention)
        yield from ((convention, value) for value in KNOWN_CONVENTIONS[convention] if value != held)


def _about(convention: str, row: CheckRun) -> Iterator[CheckRun]:
    """Yield the other rows on this convention and operation: one row may hold by chance."""
    for check in checks():
        if check.convention == convention and check.operation == row.check.operation and check != row.check:
            yield CheckRun(check, row.dtype if row.dtype in check.dtypes else check.dtypes[0], row.device)


def _run_under_claims(row: CheckRun, target: Target, claims: Claims, profile: Profile, seed: str) -> Result:
    return run_check(row, replace(target, claims=claims), profile, seed, {})


def as_advice(result: Result, *, recognised: bool = False, fail_on: Weight = Weight.FRAGILE) -> Result:
    """Return the result of a run that is not strict. A process that ended is never advice.

    fail_on: the least weight that violates. recognised: whether the code was not written for the contract. How it is
    called is then a guess of ours: an exception says that it is not called so, and nothing of what it computes; where
    it follows no rule, the finding that explains it makes a failure of it again.
    """
    unmet = result.status in (Status.FAIL, Status.TIMEOUT)
    lesser = result.weight is not None and not Weight(result.weight).at_least(fail_on)
    refused = recognised and result.status is Status.FAIL and str(result.message).startswith(_RAISED)
    return replace(result, status=Status.ADVICE) if unmet and (lesser or refused) else result
