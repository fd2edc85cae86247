"""The commands of this package: ``report`` and ``diff``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from veriformer.reports.page import Inputs

BENCHMARKS = ("a benchmarks file", "veriformer/benchmarks/1", "veriformer bench")
MUTANTS = ("a kill matrix", "veriformer/mutants/1", "veriformer mutants")
SPECIFICATION = ("a specification", "veriformer/spec/1", "veriformer spec")
"""Files beside results: what each is, its schema, and the command whose --json writes it."""

_FILE = click.Path(dir_okay=False, path_type=Path)
_FILES = click.Path(path_type=Path)


@click.command()
@click.argument("results", nargs=-1, required=True, type=_FILES, metavar="RESULTS.json…")
@click.option(
    "--benchmarks",
    type=_FILE,
    multiple=True,
    help="What --json of 'veriformer bench' counts, scaling, regression, aa or peers wrote; may be repeated.",
)
@click.option("--mutants", type=_FILE, help="What 'veriformer mutants --json' wrote.")
@click.option("--spec", "specification", type=_FILE, help="What 'veriformer spec --json' wrote.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="out",
    show_default=True,
    help="Folder to fill.",
)
@click.option("--sarif", type=_FILE, help="Write findings as SARIF 2.1.0 here.")
def report(
    results: tuple[Path, ...],
    benchmarks: tuple[Path, ...],
    mutants: Path | None,
    specification: Path | None,
    output: Path,
    sarif: Path | None,
) -> None:
    """Write what was found as pages that a person reads.

    A folder stands for the results in it.

    \b
    The folder gets
      index.html    a page that needs nothing else: no network, no JavaScript; where it would have
                    more than a megabyte, pages/ holds one for each target, operation, equation
                    and long section, at addresses that stay
      results.json  all runs as one set
      summary.md    Markdown for the summary of a CI job
      badge.svg     a badge for a README

    Exit status: 0 every run holds, 1 one is violated, 2 a file cannot be read or written,
    3 one has no verdict.
    """
    from veriformer.verify.presentation.sarif import write_sarif

    try:
        inputs = _inputs(results, benchmarks, mutants, specification)
        _write(inputs, output)
        if sarif is not None:
            write_sarif([run.results for run in inputs.runs], sarif)
    except (ValueError, OSError) as error:
        _refuse(error)
    click.echo(f"wrote {output / 'index.html'}", err=True)
    click.get_current_context().exit(max(run.results.exit_status for run in inputs.runs))


def _inputs(
    results: tuple[Path, ...], benchmarks: tuple[Path, ...], mutants: Path | None, specification: Path | None
) -> Inputs:
    from veriformer.reports.runs import check_schema, label, read_results

    runs = label([run for path in results for run in read_results(path)])
    for paths, expected in ((benchmarks, BENCHMARKS), ([mutants], MUTANTS), ([specification], SPECIFICATION)):
        for path in filter(None, paths):
            check_schema(path, *expected)
    # These take long to import: what cannot be read is told before.
    from veriformer.bench.document import joined
    from veriformer.bench.document import read as read_benchmarks
    from veriformer.reports.equations import read_specification
    from veriformer.reports.mutation_matrix import read_kills
    from veriformer.reports.page import Inputs

    return Inputs(
        runs=runs,
        benchmarks=joined([read_benchmarks(path) for path in benchmarks]),
        kills=_optional(mutants, read_kills),
        specification=_optional(specification, read_specification),
    )


Document = TypeVar("Document")


def _optional(path: Path | None, read: Callable[[Path], Document]) -> Document | None:
    return None if path is None else read(path)


def _write(inputs: Inputs, output: Path) -> None:
    from veriformer.reports.page import render_pages
    from veriformer.reports.runs import as_set
    from veriformer.reports.summary import summary
    from veriformer.reports.verdicts import badge
    from veriformer.verify.results import json_text

    texts = {
        **render_pages(inputs),
        "results.json": json_text(as_set([run.results for run in inputs.runs])),
        "summary.md": summary(inputs),
        "badge.svg": badge(inputs.verdicts),
    }
    for name, text in texts.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text(text, encoding="utf-8")


@click.command()
@click.argument("old", type=_FILES, metavar="OLD.json")
@click.argument("new", type=_FILES, metavar="NEW.json")
@click.option("--json", "json_file", type=_FILE, help="Write the changes as JSON here.")
@click.option("--markdown", type=_FILE, help="Write them as Markdown here, for the summary of a CI job or a comment.")
@click.option("--html", type=_FILE, help="Write them as a page here.")
def diff(old: Path, new: Path, json_file: Path | None, markdown: Path | None, html: Path | None) -> None:
    """Compare two results files, sets or folders of them: findings first, then rows, what is worse first.

    \b
    Exit status: 0 nothing is worse, 1 a finding or a violated row is new, or evidence is lost (what passed is not
    provided, vacuous, blocked or no longer there), 2 a file cannot be read or written, 3 a run is invalid or
    inconclusive.
    """
    from veriformer.reports.runs import read_results

    try:
        before, after = read_results(old), read_results(new)
        # These take long to import: what cannot be read is told before.
        from veriformer.reports.difference import as_json, as_markdown, as_page, compare_runs, show_changes

        found = compare_runs(before, after)
        for file, written in ((json_file, as_json), (markdown, as_markdown), (html, as_page)):
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(written(found), encoding="utf-8")
    except (ValueError, OSError) as error:
        _refuse(error)
    show_changes(found, sys.stdout)
    raise SystemExit(found.status)


def _refuse(message: object) -> NoReturn:
    """End with the status of unusable arguments and a message, without a traceback."""
    click.echo(f"veriformer: {message}", err=True)
    raise SystemExit(2)
