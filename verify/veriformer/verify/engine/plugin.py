"""The pytest plugin that turns rows into test items and test reports into a journal.

With pytest-xdist each worker loads the target, runs the rows it is given and writes them down; without it, one
process does all. A worker
that dies costs the row it was running: the controller writes that row down as a crash or, where its time was over,
as a timeout, and
pytest-xdist starts another worker for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import pytest
import torch

from veriformer.verify.engine import isolation
from veriformer.verify.engine.advice import as_advice
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.row import Row, run_row
from veriformer.verify.engine.suggestion import suggested
from veriformer.verify.judging import global_state
from veriformer.verify.presentation.clean import clean
from veriformer.verify.results import VIOLATIONS, Result, Status
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.target import Target

_LOST_WORKER = "???"  # what pytest-xdist puts in a report's ``when`` where the worker is gone


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two files that a run's processes share."""
    parser.addoption("--veriformer-plan", help="file that holds the plan of the run")
    parser.addoption("--veriformer-journal", help="file that finished rows are written to")


def pytest_configure(config: pytest.Config) -> None:
    """In a worker process: take up the plan. The process that started the run registers its own side itself."""
    if hasattr(config, "workerinput"):
        plan = Plan.restore(Path(config.option.veriformer_plan))
        journal = Journal(Path(config.option.veriformer_journal))
        config.pluginmanager.register(Worker(plan, journal, config.workerinput["workerid"]), "veriformer-run")


class _Collects:
    """What both sides share: which rows there are, and what they are called."""

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.plan = plan
        self.journal = journal
        self.profile = plan.effort

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One item per row that is to run."""
        metafunc.parametrize("row", [pytest.param(self.caller(row), id=row.key) for row in self.plan.pending()])

    def caller(self, row: Row) -> Callable[[pytest.Item], None]:
        """What the test function calls for this row; nothing, in a process that only plans."""
        return lambda item: None


class HearsInterruption:
    """Tells an interruption by the user from pytest's own, which has the same exit status."""

    interrupted = False

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note that it was the user."""
        self.interrupted = not excinfo.errisinstance(pytest.Session.Interrupted)


class Controller(_Collects, HearsInterruption):
    """The process that was started: it tells of every finished row, and speaks for workers that can no longer."""

    def __init__(self, plan: Plan, journal: Journal, tell: Callable[[Result], None]) -> None:
        super().__init__(plan, journal)
        self.tell = tell
        self.told = set(journal.statuses())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> object:
        """Spread rows by group."""
        from veriformer.verify.engine.scheduling import RowScheduling  # needs pytest-xdist, as does whoever asks

        return RowScheduling(config, log, {row.key: row.group for row in self.plan.pending()})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell of the rows that were finished since the last report."""
        if report.when == _LOST_WORKER:
            self._bury(report.node.gateway.id)
        for key, result in self.journal.results().items():
            if key not in self.told:
                self.told.add(key)
                self.tell(result)

    def _bury(self, worker: str) -> None:
        """Write down what the row that a worker was running came to, now that the worker is gone."""
        finished = self.journal.statuses()
        rows = {row.key: row for row in self.plan.pending()}
        for key, (by, at) in self.journal.begun().items():
            if by == worker and key not in finished:
                self.journal.add(died(rows[key], time.time() - at, self.profile.timeout_s))


class Worker(_Collects):
    """A process that runs rows. Only it ever loads the target."""

    may_kill = True

    def __init__(self, plan: Plan, journal: Journal, name: str) -> None:
        super().__init__(plan, journal)
        self.name = name
        self._noted: dict[str, list[str]] = {}

    def pytest_sessionstart(self) -> None:
        """Leave the other core to the other worker, and the machine its memory."""
        torch.set_num_threads(1)
        if self.plan.device == "cpu":
            isolation.limit_memory(self.profile.memory_gib)

    @cached_property
    def target(self) -> Target:
        """The implementation under test, loaded at the first row."""
        changes: list[str] = []
        with global_state.guarded(global_state.OF_ROWS, changes.append):
            target = self.plan.within(load(self.plan.target))
        if changes:
            target.changes["loading"] = changes
        return target

    def caller(self, row: Row) -> Callable[[pytest.Item], None]:
        """Run the row, leave its result for the report, and tell pytest whether it failed."""

        def call(item: pytest.Item) -> None:
            finished = self.journal.results()
            if row.key not in finished:  # else it ended an earlier worker, and was given out again
                statuses = {key: result.status for key, result in finished.items()}
                self.journal.start(row.key, self.name, time.time())
                result = run_row(
                    row,
                    self.target,
                    self.profile,
                    self.plan.seed,
                    statuses,
                    may_kill=self.may_kill,
                    stored=self.plan.stored.get(row.key),
                )
                result = suggested(row, self.target, result, self.plan.seed)
                finished[row.key] = result if self.plan.strict else as_advice(result)
                self._note_changes()
                self.journal.add(finished[row.key])
            settle(finished[row.key])

        return call

    def _note_changes(self) -> None:
        changes = {operation: list(what) for operation, what in self.target.changes.items()}
        if changes != self._noted:
            self.journal.change(changes)
            self._noted = changes


class Local(Worker, Controller):
    """Both sides in this very process, for an implementation that was handed over as an object."""

    may_kill = False

    def __init__(self, plan: Plan, journal: Journal, tell: Callable[[Result], None], target: Target) -> None:
        Controller.__init__(self, plan, journal, tell)
        self.name = "local"
        self._noted = {}
        self._handed_over = target

    def pytest_sessionstart(self) -> None:
        """Change nothing about the process that this is a guest in."""

    @property
    def target(self) -> Target:
        """The implementation as it was handed over."""
        return self._handed_over


def died(row: Row, seconds: float, timeout_s: float) -> Result:
    """The result of a row whose process is gone after so many seconds: a timeout if its time was over, else a crash."""
    if seconds >= 2 * timeout_s:
        return row.result(Status.TIMEOUT, message=f"still running after {2 * timeout_s:g} s; its process was ended")
    return row.result(Status.CRASH, message="the process that ran this row ended with it")


def settle(result: Result) -> None:
    """Tell pytest what became of a row, in its own terms."""
    if result.status in VIOLATIONS or result.status is Status.HARNESS_ERROR:
        part = f" (finding {result.finding})" if result.finding else ""
        pytest.fail(f"{result.key} {result.status}{part}: {clean(result.message)}", pytrace=False)
    if result.status not in (Status.PASS, Status.DEVIATION, Status.KNOWN_FAIL):
        pytest.skip(f"{result.status}: {result.message}")
