"""The commands of this room: ``report`` and ``diff``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from veriformer.reports.page import Findings

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("results", nargs=-1, required=True, type=_FILE, metavar="RESULTS.json…")
@click.option("--benchmarks", type=_FILE, help="What 'veriformer bench --json' wrote.")
@click.option("--mutants", type=_FILE, help="What 'veriformer mutants --json' wrote.")
@click.option("--spec", "specification", type=_FILE, help="What 'veriformer spec --json' wrote.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="out",
    show_default=True,
    help="Folder to fill.",
)
def report(
    results: tuple[Path, ...], benchmarks: Path | None, mutants: Path | None, specification: Path | None, output: Path
) -> None:
    """Write what was found as pages that a person reads.

    \b
    The folder gets
      index.html    one page that needs nothing else: no network, no JavaScript
      results.json  all runs as one set
      summary.md    Markdown for the summary of a CI job
      badge.svg     a badge for a README

    Exit status: 0 every run holds, 1 one is violated, 2 a file cannot be read or written,
    3 one has no verdict.
    """
    try:
        findings = _findings(results, benchmarks, mutants, specification)
        _write(findings, output)
    except (ValueError, OSError) as error:
        _refuse(error)
    click.echo(f"wrote {output / 'index.html'}", err=True)
    click.get_current_context().exit(max(run.results.exit_status for run in findings.runs))


def _findings(
    results: tuple[Path, ...], benchmarks: Path | None, mutants: Path | None, specification: Path | None
) -> Findings:
    from veriformer.bench.document import read as read_benchmarks
    from veriformer.reports.equations import read_specification
    from veriformer.reports.kills import read_kills
    from veriformer.reports.page import Findings
    from veriformer.reports.runs import label, read_results

    return Findings(
        runs=label([run for path in results for run in read_results(path)]),
        benchmarks=_optional(benchmarks, read_benchmarks),
        kills=_optional(mutants, read_kills),
        specification=_optional(specification, read_specification),
    )


Document = TypeVar("Document")


def _optional(path: Path | None, read: Callable[[Path], Document]) -> Document | None:
    return None if path is None else read(path)


def _write(findings: Findings, output: Path) -> None:
    from veriformer.reports.badge import badge
    from veriformer.reports.page import render
    from veriformer.reports.runs import as_set
    from veriformer.reports.summary import summary

    whole = json.dumps(as_set([run.results for run in findings.runs]), indent=1, ensure_ascii=False, allow_nan=False)
    texts = {
        "index.html": render(findings),
        "results.json": whole + "\n",
        "summary.md": summary(findings),
        "badge.svg": badge(findings.verdicts),
    }
    output.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (output / name).write_text(text, encoding="utf-8")


@click.command()
@click.argument("old", type=_FILE, metavar="OLD.json")
@click.argument("new", type=_FILE, metavar="NEW.json")
def diff(old: Path, new: Path) -> None:
    """Compare two results files, or two sets of them: newly failing rows first.

    Exit status: 0 nothing fails that did not fail before, 1 something does, 2 a file cannot be read.
    """
    from veriformer.reports.changes import changes, gaps
    from veriformer.reports.runs import read_results
    from veriformer.reports.showing import show_changes

    try:
        before, after = read_results(old), read_results(new)
    except ValueError as error:
        _refuse(error)
    found = changes(before, after)
    show_changes(found, gaps(after), sys.stdout)
    raise SystemExit(int(any(change.fails_newly for change in found)))


def _refuse(message: object) -> NoReturn:
    """End with the status of unusable arguments and a message, without a traceback."""
    click.echo(f"veriformer: {message}", err=True)
    raise SystemExit(2)
