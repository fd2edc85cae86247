"""The commands of this room: ``verify`` and ``mutants``."""

from __future__ import annotations

import importlib
import os
import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console

from veriformer.verify import results
from veriformer.verify.catalogue.selection import UnknownSelectionError
from veriformer.verify.contract import dtypes
from veriformer.verify.domain.probe import SECONDS
from veriformer.verify.engine import waivers
from veriformer.verify.engine.inquiry import add_findings
from veriformer.verify.engine.journal import Journal, JournalError
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.probe import probe
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.run import run
from veriformer.verify.presentation.terminal import show as show_findings
from veriformer.verify.results.terminal import Live, console, show_rows
from veriformer.verify.targets.loading import TargetError

INTERRUPTED = 130

PROBED = 3
"""An operation may be probed for so many times what a row may take, within its own limit."""


class ListsWords(click.Command):
    """A command whose repeatable options take several words at once: ``--only a b`` is ``--only a --only b``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Spread the words before click reads them."""
        repeatable = {word for option in self.params if getattr(option, "multiple", False) for word in option.opts}
        spread: list[str] = []
        option, first = None, False
        for word in args:
            if word.startswith("-"):
                option, first = (word if word in repeatable else None), True
                spread.append(word)
            elif option and not first:
                spread += [option, word]
            else:
                spread.append(word)
                first = False
        return super().parse_args(ctx, spread)


def refuse(message: object) -> NoReturn:
    """End with the status of unusable arguments and a message, without a traceback."""
    click.echo(f"veriformer: {message}", err=True)
    raise SystemExit(2)


def _dtypes(ctx: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(dtypes.canonical(name) for name in names)) or dtypes.NAMES
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _seed(ctx: click.Context, parameter: click.Parameter, seed: str) -> str:
    return str(secrets.randbelow(2**32)) if seed == "random" else seed


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
    callback=_seed,
    metavar="N",
    help="Any word; 'random' draws one and prints it. [default: derived from each requirement's name]",
)
@click.option(
    "--dtype", "dtype", multiple=True, callback=_dtypes, metavar="NAME…", help="fp64, fp32, bf16, fp16. [default: all]"
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time a row may take. [default: the profile's]",
)
@click.option("--device", default="cpu", show_default=True, help="PyTorch device that tensors are made on.")
@click.option(
    "--waivers",
    "waiver_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file of known failures.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write results.json here.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML here.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the conformance report here.")
@click.option("--strict", is_flag=True, help="Advice counts as a violation, and so does a domain that is narrower.")
@click.option("--rows", "every_row", is_flag=True, help="Show every row as well, and each violated one at once.")
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Go on with a run that was stopped: its --json file, or the .partial file beside it.",
)
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
    every_row: bool,
    resume: Path | None,
) -> None:
    """Hold an implementation against the published mathematics.

    TARGET is a file (path/to/mine.py), a module (pkg.mod), an attribute (pkg.mod:thing), or a name that ships with
    the suite: impl, impl:reference, impl:tiled, impl:sdpa, impl:flex, impl:triton (on a GPU, or with
    TRITON_INTERPRET=1), torch, torch:math, torch:flash, torch:flex, transformers:ARCHITECTURE, mutant:ID, variant:ID,
    sabotage:KIND, generic:EDIT.

    It carries operations under the names of the contract, as many as it likes, and imports nothing of ours. What it
    lacks is reported as not provided: operations, and optional arguments that a signature leaves out.

    \b
    Examples:
      veriformer verify mine.py
      veriformer verify mine.py --only attention --dtype fp32 --profile quick
      veriformer verify torch --json out/torch.json --html out/torch.html

    \b
    Exit status: 0 it holds (advice aside, unless --strict), 1 it is violated, 2 unusable arguments or target,
    3 no verdict: the run is invalid, or nothing was provided or exercised,
    130 interrupted (what was finished is saved; go on with --resume).
    """
    plan = Plan(
        target=target,
        profile=profile,
        only=only,
        dtypes=dtype,
        device=device,
        seed=seed,
        timeout_s=timeout,
        strict=strict,
    )
    try:
        rows = plan.rows()
        waived = waivers.of_run(target, waiver_file, rows)
        plan = replace(plan, stored=waivers.stored(waived, rows))
        patience = min(SECONDS, PROBED * plan.effort.timeout_s)
        described = probe(target, device, plan.operations(), plan.dtypes, patience)
        plan = replace(plan, domains=described.domains)
        journal = _journal(plan, json_file, resume)
    except (UnknownSelectionError, TargetError, JournalError, waivers.WaiverError) as error:
        refuse(error)
    for warning in described.warnings:
        console().print(f"[yellow]warning[/] {warning}")
    waive = partial(waivers.apply, waivers=waived, today=date.today())
    done = len(journal.results())
    with Live(len(rows) - done, target, rows=every_row) as live:
        found, interrupted = run(plan, described, journal, jobs=jobs, junit=junit, tell=lambda r: live.tell(waive(r)))
    found.results = [waive(result) for result in found.results]
    if not interrupted:
        add_findings(found, plan, jobs=jobs)
    _save(found, journal, json_file, html, keep=interrupted)
    if every_row:
        show_rows(found, console())
    show_findings(found, console(), saved=next((str(file) for file in (html, json_file) if file), None))
    if interrupted:
        console().print(
            f"interrupted: {len(found.results)} of {found.planned} rows are saved; go on with --resume {journal.path}"
        )
        raise SystemExit(INTERRUPTED)
    raise SystemExit(found.exit_status)


@click.command()
@click.argument("select", nargs=-1)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the whole matrix here."
)
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores", help="Worker processes."
)
@click.option("--seed", default="slug", callback=_seed, metavar="N", help="Any word; 'random' draws one and prints it.")
@click.option(
    "--shrink", is_flag=True, help="Seek a smallest counterexample of each killed mutant, and run its script."
)
def mutants(select: tuple[str, ...], json_file: Path | None, jobs: int, seed: str, shrink: bool) -> None:
    """Measure the suite by what it catches.

    Runs every known bug as a mutant, every correct variant, and the sabotage adapters against the requirements of
    their operations, and prints who kills whom, after how many examples, who survives, and any false alarm.

    SELECT is an identifier (GQA-01), a family (mutant, variant, sabotage), an operation or a glob; everything by
    default. 'generic' runs small edits of our own source instead, 'generic:layers.*' those of some modules.

    \b
    Exit status: 0 every mutant killed (of generic ones, or else listed as a survivor with the reason), no variant
    accused, every sabotage caught, and every script that ran found its violation again; 1 otherwise;
    2 nothing matches SELECT; 3 the suite itself made an error.
    """
    # These build every mutant, which verify needs none of.
    from veriformer.verify.mutants import matrix as matrices
    from veriformer.verify.mutants.killing import EVERYONE, generic, kill_matrix
    from veriformer.verify.mutants.shown import LiveMatrix, show

    members = generic() if any(word.startswith("generic") for word in select) else EVERYONE
    names = [name for name, member in members.items() if _chosen(name, getattr(member, "operations", ()), select)]
    if not names:
        refuse(f"mutants: nothing matches {' '.join(select)!r}; there are {', '.join(members)}")
    with LiveMatrix(len(names), console()) as live:
        matrix, interrupted = kill_matrix(names, jobs=jobs, seed=seed, tell=live.tell, shrink=shrink)
    if json_file is not None:
        document = matrix.to_dict()
        matrices.validate(document)
        results.write_json(document, json_file)
    show(matrix, Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 200))
    if interrupted:
        raise SystemExit(INTERRUPTED)
    missing = set(names) - {f"{cell.family}:{cell.member}" for cell in matrix.cells}
    if missing:
        click.echo(f"veriformer: the suite itself failed on {', '.join(sorted(missing))}", err=True)
    if matrix.errors or missing:
        raise SystemExit(3)
    wrong = (matrix.survivors, matrix.unexplained, matrix.outdated, matrix.unreproduced, matrix.false_alarms)
    raise SystemExit(1 if any(wrong) or matrix.escapes else 0)


def _chosen(name: str, operations: Sequence[str], select: Sequence[str]) -> bool:
    family, _, identifier = name.partition(":")
    words = (name, family, identifier, *operations)
    return not select or any(fnmatchcase(word, wanted) for wanted in select for word in words)


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
        _report(found, html)
    if not keep:
        journal.path.unlink(missing_ok=True)


def _report(found: results.Results, html: Path) -> None:
    # The package of reports imports this one, so it is asked for by name, and only where a page is wanted.
    page: str = importlib.import_module("veriformer.reports.page").render_run(found)
    html.parent.mkdir(parents=True, exist_ok=True)
    html.write_text(page, encoding="utf-8")
    click.echo(f"wrote {html}", err=True)
