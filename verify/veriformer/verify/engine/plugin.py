"""The pytest plugin that turns rows into test items and test reports into a journal.

With pytest-xdist each worker loads the target, runs the rows it is given and writes them down; without it, one
process does all. A worker that dies costs the row it was running: the controller writes that row down as a crash or,
where its time was over, as a timeout, and pytest-xdist starts another worker for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest

from veriformer.verify.engine.items import Collects, InterruptMixin
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.runner import Runner, confine, loaded
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import VIOLATIONS, Result, Status
from veriformer.verify.results.clean import clean
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


class _Collects(Collects[CheckRun]):
    """What both sides share: which rows there are, and what they are called."""

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.plan = plan
        self.journal = journal
        self.profile = plan.effort

    def items(self) -> list[tuple[str, CheckRun]]:
        """The rows that are to run, by key."""
        return [(row.key, row) for row in self.plan.pending()]


class Controller(_Collects, InterruptMixin):
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

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note it, for the workers as well, which would go on."""
        super().pytest_keyboard_interrupt(excinfo)
        self.journal.stop()

    def resumed(self) -> bool:
        """Take up what was left undone: a row that was begun is taken to have ended its process.

        Rows that were not begun are for another turn. False where this one came to nothing.
        """
        finished, rows = self.journal.statuses(), {row.key: row for row in self.plan.pending()}
        lost = {key: at for key, (_, at) in self.journal.begun().items() if key in rows and key not in finished}
        for key, at in lost.items():
            self.journal.add(died(rows[key], time.time() - at, self.profile.timeout_s))
        done, self.plan = len(self.plan.finished), replace(self.plan, finished=tuple(self.journal.statuses()))
        return len(self.plan.finished) > done

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

    def pytest_sessionstart(self) -> None:
        """Leave the other core to the other worker, and the machine its memory."""
        confine(self.plan)

    @cached_property
    def runner(self) -> Runner:
        """What runs rows, with the target loaded at the first of them."""
        return Runner(self.plan, loaded(self.plan, load), may_kill=self.may_kill)

    def caller(self, row: CheckRun) -> Callable[[pytest.Item], None]:
        """Run the row, leave its result for the report, and tell pytest whether it failed."""

        def call(item: pytest.Item) -> None:
            finished = self.journal.results()
            if self.journal.is_stopped():
                pytest.skip("the run is stopped")
            if row.key not in finished:  # else it ended an earlier worker, and was given out again
                statuses = {key: result.status for key, result in finished.items()}
                self.journal.start(row.key, self.name, time.time())
                finished[row.key] = self.runner.run(row, statuses)
                changes, seen = self.runner.changes(), self.runner.seen()
                if seen:
                    self.journal.see(seen)
                if changes:
                    self.journal.change(changes)
                self.journal.add(finished[row.key])
            report_outcome(finished[row.key])

        return call


class Local(Worker, Controller):
    """Both sides in this very process, for an implementation that was handed over as an object."""

    may_kill = False

    def __init__(self, plan: Plan, journal: Journal, tell: Callable[[Result], None], target: Target) -> None:
        Controller.__init__(self, plan, journal, tell)
        self.name = "local"
        self._handed_over = target

    def pytest_sessionstart(self) -> None:
        """Change nothing about the process of the caller."""

    @cached_property
    def runner(self) -> Runner:
        """What runs rows, on the implementation as it was handed over."""
        return Runner(self.plan, self._handed_over, may_kill=self.may_kill)


def died(row: CheckRun, seconds: float, timeout_s: float) -> Result:
    """The result of a row whose process is gone after so many seconds: a timeout if its time was over, else a crash."""
    if seconds >= 2 * timeout_s:
        return row.result(Status.TIMEOUT, message=f"still running after {2 * timeout_s:g} s; its process was ended")
    return row.result(Status.CRASH, message="the process that ran this row ended with it")


def report_outcome(result: Result) -> None:
    """Tell pytest what became of a row, in its own terms."""
    if result.status in VIOLATIONS or result.status is Status.HARNESS_ERROR:
        part = f" (finding {result.finding})" if result.finding else ""
        pytest.fail(f"{result.key} {result.status}{part}: {clean(result.message)}", pytrace=False)
    if result.status not in (Status.PASS, Status.DEVIATION, Status.KNOWN_FAIL):
        pytest.skip(f"{result.status}: {result.message}")
