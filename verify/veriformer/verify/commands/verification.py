"""Run of ``verify``, from checked arguments to the exit status; it ends after so many rows that failed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from veriformer.verify import results
from veriformer.verify.commands.options import INTERRUPTED, annotate, say, write_page
from veriformer.verify.commands.request import Request, compare_solution, join_statuses, journal_of, solution_of
from veriformer.verify.domain.probe import SECONDS
from veriformer.verify.engine import extent, last_failed, remote, several, waivers
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.last_failed import failed
from veriformer.verify.engine.look import Look
from veriformer.verify.engine.merging import shard_of
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.run import INTERRUPTED as BY_HAND
from veriformer.verify.engine.run import store_findings
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.presentation.junit import write_junit
from veriformer.verify.presentation.progress import Live, console, show_rows, waiting
from veriformer.verify.presentation.sarif import write_sarif
from veriformer.verify.presentation.terminal import show as show_findings
from veriformer.verify.presentation.terminal import show_recognised
from veriformer.verify.results import Result
from veriformer.verify.results.finding import Finding

PROBED = 3
"""An operation may be probed for so many times what a row may take, within its own limit."""


@dataclass(frozen=True)
class _Ran:
    """Results of the planned rows. stopped: why no more came, where the run was stopped. told: findings that were told
    while it went on."""

    found: results.Results
    journal: Journal
    planned: int
    stopped: str | None
    told: list[Finding]


def verification(request: Request, first: Look | None) -> int:
    """Run the rows, seek the causes of what failed, write and tell what was found, and return the exit status.

    first: a process that has loaded the target.
    Raises UnknownSelectionError, TargetError, JournalError, WaiverError or ExecutionError for what cannot be run.
    """
    problem_status, asked = None, request.target
    if request.is_problem():
        problem_status = compare_solution(request.target, request.device)
        request = replace(request, target=solution_of(request.target))
    ran = _run(request, first)
    last_failed.remember(asked, ran.found)
    status = _tell(ran, request)
    return status if problem_status is None or ran.stopped else join_statuses(problem_status, status)


def _run(request: Request, first: Look | None = None) -> _Ran:
    plan, told = request.plan(), list[Finding]()
    rows = plan.rows()
    waived = waivers.of_run(request.target, request.waiver_file, rows)
    plan = replace(plan, stored=waivers.stored(waived, rows))
    part = None
    if request.shard is not None:
        plan, part = shard_of(plan, *request.shard, request.seconds())
        rows = plan.rows()
    if request.resume is not None:
        journal_of(request.resume).check(plan)
    execution = remote.execution(
        request.scheduler,
        jobs=request.jobs,
        device=request.device,
        files=request.files,
        say=say,
    )
    with execution as place:
        with waiting(f"{request.target}: finding out what it supports"):
            described = place.look(plan, min(SECONDS, PROBED * plan.effort.timeout_s), first)
        plan = replace(plan, domains=described.domains, recognised=described.recognised)
        journal = _journal(plan, request)
        for warning in described.warnings:
            console().print(f"[yellow]warning[/] {warning}")
        show_recognised(described.recognised, request.target, console())
        waive: Callable[[results.Result], results.Result] = partial(waivers.apply, waivers=waived, today=date.today())
        title = f"{request.target} (part {part})" if part else request.target
        finished = journal.results()
        pending = [row.check.operation for row in rows if row.key not in finished]
        with Live(pending, title, rows=request.every_row, lacking=described.lacking) as live:
            limit = Limit(request.most, live.tell)

            def find(finding: Finding) -> None:
                told.append(finding)
                live.find(finding)

            found, stopped = remote.run(
                plan,
                described,
                journal,
                place,
                tell=lambda result: limit.tell(waive(result)),
                find=find if part is None else None,
                waive=waive,
            )
        if limit.reason is not None:
            # What was asked for is done: the rows up to there are the run, and are judged as one.
            stopped = limit.reason if len(found.results) < len(rows) else None
            found.planned = len(found.results)
        found.results = [waive(result) for result in found.results]
        found.shard = part
        if stopped is None and part is None:
            with waiting(f"{request.target}: looking for the causes of what failed"):
                stopped = remote.add_findings(found, plan, place)
        elif part is None:
            store_findings(found, {})
    if stopped is None and part is None and request.scheduler is None:
        found.findings = several.name_first(found.findings, described.recognised)
        told = several.name_first(told, described.recognised)
        seen = [described.seen, journal.seen()]
        stopped = _judge_others(found, told, request, rows, described.recognised, seen)
    return _Ran(found, journal, len(rows), stopped, told)


def _judge_others(
    found: results.Results,
    told: list[Finding],
    request: Request,
    rows: Sequence[CheckRun],
    recognised: Mapping[str, Any],
    seen: Sequence[Mapping[str, extent.Seen]],
) -> str | None:
    """Judge further candidates of an operation by their equations; return why no more came, where that was stopped.

    told: findings that were told while rows ran, to which theirs are added. seen: the lines that calls of the
    operations ran.
    """
    alone = replace(request, waiver_file=None, json_file=None, junit=None, html=None, sarif=None, resume=None)
    for name, asked in several.further(request.target, recognised, rows):
        ran = _run(replace(alone, target=f"{request.target}:{name}", only=asked))
        several.absorb(found, ran.found, name, asked, extent.lines_run([*seen, ran.journal.seen()]))
        told += [several.of_candidate(one, name) for one in ran.told]
        ran.journal.path.unlink(missing_ok=True)
        if ran.stopped is not None:
            return ran.stopped
    return None


def _tell(ran: _Ran, request: Request) -> int:
    found, stopped = ran.found, ran.stopped
    _save(ran, request)
    if request.every_row:
        show_rows(found, console())
    if found.shard is None:
        saved = next((str(file) for file in (request.html, request.json_file) if file), None)
        show_findings(found, console(), saved=saved, told=ran.told)
        if request.annotated:
            annotate(found)
    if stopped is not None:
        where = f"go on with --resume {ran.journal.path}"
        console().print(f"{stopped}: {len(found.results)} of {ran.planned} rows are saved; {where}")
        return INTERRUPTED if stopped == BY_HAND else found.exit_status
    if found.shard is not None:
        told = ", ".join(f"{count} {status}" for status, count in found.summary.items()) or "none"
        rows = f"{len(found.results)} of {found.planned} rows ({told})"
        console().print(f"part {found.shard}: {rows}; go on with merge")
        return 0 if found.valid else 3
    return found.exit_status


def _journal(plan: Plan, request: Request) -> Journal:
    if request.resume is not None:
        journal = journal_of(request.resume)
        journal.resume(plan)
        return journal
    if request.json_file is not None:
        journal = Journal(request.json_file.with_name(request.json_file.name + ".partial"))
    else:
        journal = Journal(Path(tempfile.mkdtemp(prefix="veriformer-")) / "results.json.partial")
    journal.begin(plan)
    return journal


def _save(ran: _Ran, request: Request) -> None:
    if request.json_file is not None:
        results.write(ran.found, request.json_file)
    if request.html is not None:
        write_page(ran.found, request.html)
    if request.junit is not None:
        write_junit(ran.found, request.junit)
    if request.sarif is not None:
        write_sarif([ran.found], request.sarif)
    if ran.stopped is None:
        ran.journal.path.unlink(missing_ok=True)


class Limit:
    """Interrupts a run, as a person would, once so many rows have failed; 0 for never. reason: why it did."""

    def __init__(self, most: int, tell: Callable[[Result], None]) -> None:
        self._most = most
        self._tell = tell
        self._failed = 0
        self.reason: str | None = None

    def tell(self, result: Result) -> None:
        """Tell of a row, and interrupt the run where it was the last that may fail."""
        self._tell(result)
        self._failed += failed(result)
        if self._most and self._failed >= self._most and self.reason is None:
            rows = "row" if self._failed == 1 else "rows"
            self.reason = f"stopped after {self._failed} {rows} that failed"
            raise KeyboardInterrupt
