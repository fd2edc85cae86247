"""The command ``verify``."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import click

from veriformer.verify import results
from veriformer.verify.catalogue.selection import UnknownSelectionError
from veriformer.verify.commands import problem
from veriformer.verify.commands.options import (
    BALANCE,
    FAIL_ON,
    FILES,
    INTERRUPTED,
    PARTIAL,
    SCHEDULER,
    SHARD,
    ListsWords,
    canonical_dtypes,
    check_shard,
    refuse,
    say,
    seed_or_drawn,
    write_page,
)
from veriformer.verify.domain.probe import SECONDS
from veriformer.verify.engine import arguments, waivers
from veriformer.verify.engine.execution import ExecutionError, execution
from veriformer.verify.engine.inquiry import store_findings
from veriformer.verify.engine.journal import Journal, JournalError
from veriformer.verify.engine.merging import shard_of
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.run import INTERRUPTED as BY_HAND
from veriformer.verify.presentation.terminal import show as show_findings
from veriformer.verify.presentation.terminal import show_recognised
from veriformer.verify.results.junit import write_junit
from veriformer.verify.results.terminal import Live, console, show_rows, waiting
from veriformer.verify.targets.loading import TargetError

_FILE = click.Path(dir_okay=False, path_type=Path)

PROBED = 3
"""An operation may be probed for so many times what a row may take, within its own limit."""


@click.command(cls=ListsWords)
@click.argument("target")
@click.option(
    "--only", multiple=True, metavar="SELECT…", help="Requirements, operations, equation numbers (24a, 20-23) or globs."
)
@click.option(
    "--profile", type=click.Choice(list(PROFILES)), default="default", show_default=True, help="How much work."
)
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores", help="Worker processes."
)
@click.option(
    "--seed",
    default="slug",
    callback=seed_or_drawn,
    metavar="N",
    help="Any word; 'random' draws one and prints it. [default: derived from each requirement's name]",
)
@click.option(
    "--dtype",
    "dtype",
    multiple=True,
    callback=canonical_dtypes,
    metavar="NAME…",
    help="fp64, fp32, bf16, fp16. [default: all]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time a row may take. [default: the profile's]",
)
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="PyTorch device that tensors are made on.",
)
@click.option(
    "--waivers",
    "waiver_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file of known failures.",
)
@click.option("--json", "json_file", type=_FILE, callback=arguments.output, help="Write results.json here.")
@click.option("--junit", type=_FILE, callback=arguments.output, help="Write JUnit XML here.")
@click.option("--html", type=_FILE, callback=arguments.output, help="Write the conformance report here.")
@click.option(
    "--strict",
    is_flag=True,
    help="Advice counts as a violation, and so does whatever of the contract the target refuses.",
)
@FAIL_ON
@PARTIAL
@click.option("--rows", "every_row", is_flag=True, help="Show every row as well, and each violated one at once.")
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Go on with a run that was stopped: its --json file, or the .partial file beside it.",
)
@SHARD
@BALANCE
@SCHEDULER
@FILES
def verify(
    target: str,
    only: tuple[str, ...],
    profile: str,
    jobs: int,
    seed: str,
    dtype: tuple[str, ...],
    timeout: float | None,
    device: str,
    waiver_file: Path | None,
    json_file: Path | None,
    junit: Path | None,
    html: Path | None,
    strict: bool,
    fail_on: str | None,
    partial_accepted: bool,
    every_row: bool,
    resume: Path | None,
    shard: tuple[int, int] | None,
    balance: Path | None,
    scheduler: str | None,
    files: tuple[Path, ...],
) -> None:
    """Hold an implementation against the published mathematics.

    TARGET is a file (path/to/mine.py), a module (pkg.mod), an attribute of either (path/to/mine.py:thing,
    pkg.mod:thing), or a name that ships with the suite: impl, impl:reference, impl:tiled, impl:sdpa, impl:flex,
    impl:triton (on a GPU, or with TRITON_INTERPRET=1), torch, torch:math, torch:flash, torch:flex, transformers,
    transformers:eager, transformers:ARCHITECTURE, x-transformers, x-transformers:flash, mutant:ID, variant:ID,
    sabotage:KIND, generic:EDIT.

    It carries operations under the names of the contract, as many as it likes, and imports nothing of ours. What it
    lacks is reported as not provided: operations, and optional arguments that a signature leaves out. In a problem of
    KernelBench with its solution (Model, ModelNew, get_inputs) the two are compared first, and ModelNew is verified
    where it is recognised; so is a solution of flashinfer-bench (a JSON file), with the definition that it names.

    \b
    Examples:
      veriformer verify mine.py
      veriformer verify mine.py --only attention --dtype fp32 --profile quick
      veriformer verify torch --json out/torch.json --html out/torch.html

    \b
    Exit status: 0 it holds, perhaps with weaknesses and advice (unless --fail-on or --strict), 1 it is violated:
    a finding that is wrong, a leak or fragile, 2 unusable arguments or target, 3 no verdict: the run is invalid,
    nothing is provided, the equation of some operation held in no dtype, a law of who sees whom could tell nothing, or
    a mask, a cache, a state or a branch of the code was not seen (unless --partial); also an error of the suite itself,
    130 interrupted (what was finished is saved; go on with --resume). With --shard: 0 once all rows of the part are
    finished, whatever came of them (the verdict is that of 'veriformer merge'), 3 where the suite itself made an error.
    """
    check_shard(shard, balance, json_file, html)
    if scheduler is None:
        arguments.check_device(device)
    problem_status = 0
    is_problem = scheduler is None and shard is None and problem.is_problem(target)
    if is_problem:
        problem_status = problem.status(target, device)
        target = problem.solution_of(target)
    plan = Plan(
        target=target,
        profile=profile,
        only=only,
        dtypes=dtype,
        device=device,
        seed=seed,
        timeout_s=timeout,
        strict=strict,
        partial=partial_accepted,
    )
    try:
        rows = plan.rows()
        waived = waivers.of_run(target, waiver_file, rows)
        least = fail_on or waivers.fail_on(waiver_file) or plan.fail_on
        plan = replace(plan, stored=waivers.stored(waived, rows), fail_on=least)
        part = None
        if shard is not None:
            plan, part = shard_of(plan, *shard, _seconds(balance))
            rows = plan.rows()
        with execution(scheduler, jobs=jobs, device=device, files=files, say=say) as how:
            with waiting(f"{target}: loading it, and finding out what it supports"):
                described = how.look(plan, min(SECONDS, PROBED * plan.effort.timeout_s))
            plan = replace(plan, domains=described.domains, recognised=described.recognised)
            journal = _journal(plan, json_file, resume)
            for warning in described.warnings:
                console().print(f"[yellow]warning[/] {warning}")
            show_recognised(described.recognised, target, console())
            waive = partial(waivers.apply, waivers=waived, today=date.today())
            title = f"{target} (part {part})" if part else target
            with Live(len(rows) - len(journal.results()), title, rows=every_row) as live:
                found, stopped = how.run(plan, described, journal, lambda result: live.tell(waive(result)))
            found.results = [waive(result) for result in found.results]
            found.shard = part
            if stopped is None and part is None:
                with waiting(f"{target}: looking for the causes of what failed"):
                    stopped = how.findings(found, plan)
            elif part is None:
                store_findings(found, {})
    except (
        UnknownSelectionError,
        TargetError,
        JournalError,
        waivers.WaiverError,
        ExecutionError,
    ) as error:
        refuse(error)
    _save(found, journal, json_file, html, keep=stopped is not None)
    if junit is not None:
        write_junit(found, junit)
    if every_row:
        show_rows(found, console())
    if part is None:
        show_findings(found, console(), saved=next((str(file) for file in (html, json_file) if file), None))
    if stopped is not None:
        console().print(
            f"{stopped}: {len(found.results)} of {found.planned} rows are saved; go on with --resume {journal.path}"
        )
        raise SystemExit(INTERRUPTED if stopped == BY_HAND else found.exit_status)
    if part is not None:
        told = ", ".join(f"{count} {status}" for status, count in found.summary.items()) or "none"
        console().print(f"part {part}: {len(found.results)} of {found.planned} rows ({told}); go on with merge")
        raise SystemExit(0 if found.valid else 3)
    raise SystemExit(problem.joined(problem_status, found.exit_status) if is_problem else found.exit_status)


def _seconds(balance: Path | None) -> dict[str, float]:
    try:
        return {row.key: row.seconds for row in results.read(balance).results} if balance else {}
    except ValueError as error:
        refuse(error)


def _journal(plan: Plan, json_file: Path | None, resume: Path | None) -> Journal:
    if resume is not None:
        beside = resume.with_name(resume.name + ".partial")
        journal = Journal(beside if beside.is_file() else resume)
        journal.resume(plan)
        return journal
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        journal = Journal(json_file.with_name(json_file.name + ".partial"))
    else:
        journal = Journal(Path(tempfile.mkdtemp(prefix="veriformer-")) / "results.json.partial")
    journal.begin(plan)
    return journal


def _save(found: results.Results, journal: Journal, json_file: Path | None, html: Path | None, *, keep: bool) -> None:
    if json_file is not None:
        results.write(found, json_file)
    if html is not None:
        write_page(found, html)
    if not keep:
        journal.path.unlink(missing_ok=True)
