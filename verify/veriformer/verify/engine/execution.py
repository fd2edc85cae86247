"""Where a run is executed: by processes of this machine, or by the workers of a Dask scheduler."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import torch

from veriformer.verify.engine import probe, remote
from veriformer.verify.engine.arguments import LOCAL, ExecutionError
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.look import Look
from veriformer.verify.engine.plan import Plan
from veriformer.verify.results import Result, Results
from veriformer.workers.processes import prepare
from veriformer.workers.session import ClusterError, LostError


class Execution(Protocol):
    """Interface of the place where a run is executed, local or remote."""

    def look(self, plan: Plan, seconds: float, first: Look | None = None) -> probe.TargetInfo:
        """Describe the target before its first row. first: a process here that has loaded it, if one has.

        Raises TargetError where it cannot be loaded.
        """

    def run(
        self, plan: Plan, described: probe.TargetInfo, journal: Journal, tell: Callable[[Result], None]
    ) -> tuple[Results, str | None]:
        """Run the pending rows; returns the results so far, and why no more came where the run was stopped."""

    def findings(self, found: Results, plan: Plan) -> str | None:
        """Reduce failing rows to findings; returns why not all causes were looked for where that was stopped."""


class Processes:
    """Processes of this machine."""

    def __init__(self, jobs: int) -> None:
        self.place = remote.Here(jobs)
        prepare([remote.WORK])  # which takes as long as looking at the target does

    def look(self, plan: Plan, seconds: float, first: Look | None = None) -> probe.TargetInfo:
        """In as many processes of its own."""
        asked = (plan.target, plan.device, plan.operations(), plan.dtypes, seconds)
        return probe.probe(*asked, jobs=self.place.jobs, first=first)

    def run(
        self, plan: Plan, described: probe.TargetInfo, journal: Journal, tell: Callable[[Result], None]
    ) -> tuple[Results, str | None]:
        """Over the processes."""
        return remote.run(plan, described, journal, self.place, tell=tell)

    def findings(self, found: Results, plan: Plan) -> str | None:
        """Over as many processes."""
        return remote.add_findings(found, plan, self.place)


@contextlib.contextmanager
def execution(
    scheduler: str | None,
    *,
    jobs: int,
    device: str,
    files: Sequence[Path] = (),
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Execution]:
    """The place for a run, and what it needs for as long as the context lasts.

    scheduler: None for this machine's processes; the address or the file of a Dask scheduler; or ``local`` for one that
    is started here on the loopback, with a worker for each job or, for another device than the CPU, for each GPU.
    Raises ExecutionError.
    """
    if scheduler is None:
        yield Processes(jobs)
        return
    with cluster(scheduler, jobs=jobs, device=device) as address:
        yield remote.Workers(remote.Place(address, tuple(files), say=say))


@contextlib.contextmanager
def cluster(scheduler: str, *, jobs: int, device: str = "cpu") -> Iterator[str]:
    """The address (or file) of a scheduler: the one given, or of one that is started here. Raises ExecutionError."""
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
