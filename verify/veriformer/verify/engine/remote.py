"""A run whose rows and findings are worked at elsewhere: by processes of this machine, or by workers of a scheduler."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from veriformer.verify.engine.arguments import LOCAL, ExecutionError
from veriformer.verify.engine.early import WAIT, EarlyFindings, rank
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.look import LOADING_S, Look
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.probe import TargetInfo, probe
from veriformer.verify.engine.run import (
    INTERRUPTED,
    LEAST_S_OF_FINDINGS,
    SHARE_OF_FINDINGS,
    results_of,
    settle,
    store_findings,
)
from veriformer.verify.engine.runner import died
from veriformer.verify.findings import everything
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.recognition.places import of_sender
from veriformer.verify.results import Result, Results, Status, json_safe
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.shipping import Shipped, parcel
from veriformer.workers.files import read
from veriformer.workers.processes import Processes, prepare
from veriformer.workers.session import ClusterError, Executor, Item, LostError, Outcome, Session
from veriformer.workers.versions import versions

if TYPE_CHECKING:
    from veriformer.workers.controller import Controller

WORK = "veriformer.verify.engine.work"
_SLACK_S = 30.0
"""Beyond the time after which a row's process ends itself, until it is ended from outside; it has to load first."""


class Elsewhere(Protocol):
    """Where a run's work is done."""

    def look(self, plan: Plan, seconds: float, first: Look | None = None) -> TargetInfo:
        """Describe the target before its first row. first: a process here that has loaded it, if one has.

        Raises TargetError where it cannot be loaded.
        """

    def session(self, plan: Plan, work: str, **fields: Any) -> Session:
        """Return the session that does some work of a plan."""

    def controller(self, session: Session) -> AbstractContextManager[Executor]:
        """Return whoever has the items of a session done here."""


@dataclass(frozen=True)
class Here:
    """Processes of this machine, so many."""

    jobs: int

    def look(self, plan: Plan, seconds: float, first: Look | None = None) -> TargetInfo:
        """Probe the target in processes of this machine, one for each job."""
        asked = (plan.target, plan.device, plan.operations(), plan.dtypes, seconds)
        return probe(*asked, jobs=self.jobs, first=first)

    def session(self, plan: Plan, work: str, **fields: Any) -> Session:
        """Return the session that does some work of a plan."""
        return Session(work=f"{WORK}:{work}", payload=_payload(plan, Shipped(plan.target, plan.target), fields))

    def controller(self, session: Session) -> Processes:
        """Return whoever has the items of a session done here."""
        return Processes(session, self.jobs)


@dataclass(frozen=True)
class Place:
    """Workers of a scheduler. files: sent there beside the target: wheels, modules, folders of data."""

    scheduler: str
    files: tuple[Path, ...] = ()
    patience_s: float = 60.0
    say: Callable[[str], None] = lambda text: None

    def look(self, plan: Plan, seconds: float, first: Look | None = None) -> TargetInfo:
        """Probe the target on a Dask worker. Raises TargetError, ClusterError."""
        found: list[Outcome] = []
        limit = LOADING_S + len(plan.operations()) * (seconds + _SLACK_S)
        with self.controller(self.session(plan, "Probe", seconds=seconds)) as side:
            if side.dashboard:
                self.say(f"{sum(one['threads'] for one in side.resources):g} threads; dashboard {side.dashboard}")
            item = Item(name="target", limit_s=limit, resources=demand(plan, side.resources))
            side.run([item], lambda _, outcome: found.append(outcome))
        if found[0].error is not None:
            raise TargetError(found[0].error)
        if found[0].lost is not None:
            worker = found[0].worker
            raise TargetError(f"target {plan.target!r} ended the process that looked at it, on worker {worker}")
        described = TargetInfo(**found[0].value)
        where = of_sender(described.implementation["where"], plan.target)
        return replace(described, implementation={**described.implementation, "target": plan.target, "where": where})

    def session(self, plan: Plan, work: str, **fields: Any) -> Session:
        """Return the session that does some work of a plan."""
        sent = parcel(plan.target)
        return Session(
            work=f"{WORK}:{work}",
            payload=_payload(plan, sent.shipped, fields),
            files={**sent.files, **read(self.files)},
            versions={**versions(), **sent.versions},
        )

    def controller(self, session: Session) -> Controller:
        """Return whoever has the items of a session done there."""
        from veriformer.workers.controller import Controller  # which needs Dask

        return Controller(self.scheduler, session, self.patience_s, self.say)


def _payload(plan: Plan, target: Shipped, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"plan": json_safe({**asdict(plan), "finished": ()}), "target": asdict(target), **fields}


@contextlib.contextmanager
def execution(
    scheduler: str | None,
    *,
    jobs: int,
    device: str,
    files: Sequence[Path] = (),
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Elsewhere]:
    """Provide the place in which a run is executed, for as long as the context lasts.

    scheduler: None for this machine's processes; the address or the file of a Dask scheduler; or ``local`` for one that
    is started here on the loopback, with a worker for each job or, for another device than the CPU, for each GPU.
    Raises ExecutionError.
    """
    if scheduler is None:
        prepare([WORK])  # which takes as long as looking at the target does
        yield Here(jobs)
        return
    with cluster(scheduler, jobs=jobs, device=device) as address:
        yield Place(address, tuple(files), say=say)


@contextlib.contextmanager
def cluster(scheduler: str, *, jobs: int, device: str = "cpu") -> Iterator[str]:
    """Provide a scheduler's address (or file): the one given, or that of a scheduler started here. Raises
    ExecutionError.
    """
    try:
        from veriformer.workers.address import NoSchedulerError
        from veriformer.workers.place import local
    except ImportError as error:
        raise ExecutionError(
            f"--scheduler: pip install 'veriformer[distributed]' brings what is missing: {error}"
        ) from error
    try:
        if scheduler == LOCAL:
            with local(jobs, torch.cuda.device_count() if device != "cpu" else 0) as address:
                yield address
        else:
            yield scheduler
    except (ClusterError, NoSchedulerError, LostError) as error:
        raise ExecutionError(str(error)) from error


def run(
    plan: Plan,
    described: TargetInfo,
    journal: Journal,
    place: Elsewhere,
    *,
    tell: Callable[[Result], None],
    find: Callable[[Finding], None] | None = None,
    waive: Callable[[Result], Result] = lambda result: result,
) -> tuple[Results, str | None]:
    """Run the pending rows of a plan elsewhere; the journal has been begun or resumed.

    find: told, while other rows run, the findings of an operation whose equation or gradient fails; None where nobody
    asks for them. waive: makes known failures of the rows that are waived.
    Returns the results so far, and why no more came if the scheduler was lost for good. Raises ClusterError where no
    worker can do the work.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    settle(plan, described.lacking, journal, tell)
    finished = dict(journal.statuses())
    plan = replace(plan, finished=tuple(finished))
    pending = {row.key: row for row in plan.pending()}
    stopped = None
    early = None if find is None else EarlyFindings(plan, described, journal, waive, find)
    receiver = _Receiver(plan, journal, tell, finished, pending, early)
    if pending:
        try:
            with place.controller(place.session(plan, "Judgement")) as side:
                side.run(receiver.items(demand(plan, side.resources)), receiver.receive, receiver.extra)
        except LostError as error:
            stopped = str(error)
        except KeyboardInterrupt:
            stopped = INTERRUPTED
    return results_of(plan, described, journal, started, clock), stopped


@dataclass
class _Receiver:
    plan: Plan
    journal: Journal
    tell: Callable[[Result], None]
    finished: dict[str, Status]
    pending: Mapping[str, CheckRun]
    early: EarlyFindings | None

    def items(self, resources: Mapping[str, float]) -> list[Item]:
        """Return the rows as items, equations and contracts first, and the early findings of these before them."""
        limit = 2 * self.plan.effort.timeout_s + _SLACK_S
        rows = sorted(self.pending.values(), key=rank)
        found = [] if self.early is None else self.early.items(self.pending, resources)
        return found + [
            Item(name=row.key, needs=tuple(self._rests_on(row)), limit_s=limit, resources=resources) for row in rows
        ]

    def extra(self, item: Item) -> dict[str, Any]:
        """Return the statuses of the rows that a row rests on, by key; for early findings, the failing rows."""
        if item.name not in self.pending:
            assert self.early is not None
            return self.early.failing(item)
        keys = self._rests_on(self.pending[item.name])
        return {key: self.finished[key].value for key in keys if key in self.finished}

    def receive(self, item: Item, outcome: Outcome) -> None:
        """Write a finished row down, and tell of it; or tell the findings."""
        if item.name not in self.pending:
            assert self.early is not None
            self.early.receive(item, outcome)
            return
        row = self.pending[item.name]
        if outcome.error is not None:
            result = row.result(Status.HARNESS_ERROR, message=outcome.error)
        elif outcome.lost is not None:
            result = died(row, outcome.lost, self.plan.effort.timeout_s)
        else:
            result = Result.from_dict(outcome.value["result"])
            if outcome.value["changes"]:
                self.journal.change(outcome.value["changes"])
            if outcome.value["seen"]:
                self.journal.see(outcome.value["seen"])
        self.finished[item.name] = result.status
        self.journal.add(result)
        self.tell(result)

    def _rests_on(self, row: CheckRun) -> list[str]:
        return [f"{slug}[{row.dtype}-{row.device}]" for slug in row.check.requirement.prerequisites]


def add_findings(found: Results, plan: Plan, place: Elsewhere) -> str | None:
    """Reduce the failing rows of a run to findings elsewhere, an operation at a time.

    Return why no more came where that was stopped: the causes that were known by then are told, and other rows by their
    requirements.
    """
    rows = everything.by_operation(found.results)
    told: dict[str, list[Finding]] = {}
    stopped = None
    try:
        _look_into(rows, found.duration_s, plan, place, told)
    except LostError as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    store_findings(found, {operation: told[operation] for operation in rows if operation in told})
    return stopped


def _look_into(
    rows: everything.ByOperation, duration_s: float, plan: Plan, place: Elsewhere, told: dict[str, list[Finding]]
) -> None:
    """Diagnose failing rows on workers, and keep the findings of each operation."""
    if rows:
        with place.controller(place.session(plan, "Judgement")) as side:
            threads = sum(one["threads"] for one in side.resources)
            seconds = max(LEAST_S_OF_FINDINGS, SHARE_OF_FINDINGS * duration_s * threads / len(rows))
            resources = demand(plan, side.resources)
            items = [Item(name=operation, limit_s=WAIT * seconds, resources=resources) for operation in rows]
            said = {
                operation: {"seconds": seconds, "rows": [json_safe(row.to_dict()) for row in failing]}
                for operation, failing in rows.items()
            }

            def receive(item: Item, outcome: Outcome) -> None:
                if outcome.value is not None:
                    told[item.name] = [Finding.from_dict(one) for one in outcome.value]

            side.run(items, receive, lambda item: said[item.name])


def demand(plan: Plan, offers: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the resources that a worker must have free for a row of this plan. Raises ClusterError where none offers
    them.

    On a GPU, a share of it for each thread beside it, so that while one row has the GPU compute, the others compute on
    cores what it should have given. Memory, where workers say how much they have.
    """
    wanted: dict[str, float] = {}
    if plan.device != "cpu":
        shares = [offer["GPU"] / offer["threads"] for offer in offers if offer.get("GPU")]
        if not shares:
            raise ClusterError(f"--device {plan.device}: no worker offers a GPU; start one with --resources GPU=1")
        wanted["GPU"] = min(shares)
    if any("memory" in offer for offer in offers):
        wanted["memory"] = plan.effort.memory_gib * 2**30
    return wanted
