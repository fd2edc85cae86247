"""``veriformer merge``: the parts of a run, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from veriformer.verify import results
from veriformer.verify.commands.options import refuse, write_page
from veriformer.verify.engine import merging
from veriformer.verify.engine.arguments import JOBS
from veriformer.verify.engine.parts import NotOneRunError
from veriformer.verify.presentation.progress import console, show_rows
from veriformer.verify.presentation.terminal import show as show_findings
from veriformer.verify.results import Results
from veriformer.verify.targets.error import TargetError

_FILE = click.Path(dir_okay=False, path_type=Path)
_INVALID = 3


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="RESULTS…")
@click.option("--json", "json_file", type=_FILE, help="Write the whole run here, as --json of a single run would.")
@click.option("--html", type=_FILE, help="Write the conformance report here.")
@JOBS
@click.option("--rows", "every_row", is_flag=True, help="Show every row as well.")
def merge(files: tuple[Path, ...], json_file: Path | None, html: Path | None, jobs: int, every_row: bool) -> None:
    """Put the parts of a run together, as if one machine had run it all.

    RESULTS are the --json files of 'veriformer verify --shard K/N' or of 'veriformer mutants --shard K/N', all of one
    run: the same plan and seed, one commit, one version of everything that matters, every row once. Findings are
    looked for in the rows of all parts, for which the target has to be here, as it was there; where it is not, they
    are told requirement by requirement.

    \b
    Exit status: that of the whole run; 2 a file cannot be read or written, 3 no verdict: the files are not of one run
    (nothing is written then), or something of it is missing (said, and written as an invalid run).
    """
    try:
        documents = {str(path): _document(path) for path in files}
        if all("cells" in document for document in documents.values()):
            _matrix(documents, json_file)
        parts = {name: _part(name, document) for name, document in documents.items()}
    except NotOneRunError as error:
        _invalid(error)
    except (OSError, ValueError, TypeError) as error:
        refuse(f"merge: expected what --shard wrote with --json, all by 'verify' or all by 'mutants': {error}")
    try:
        merged = merging.merge(parts)
    except NotOneRunError as error:
        _invalid(error)
    # This imports PyTorch, which takes longer than all that is checked before.
    from veriformer.verify.engine import remote
    from veriformer.verify.engine.run import store_findings

    found, reason = merged.results, _unlike(merged)
    if reason is None:
        remote.add_findings(found, merged.plan, remote.Here(jobs))
    else:
        store_findings(found, {})
        console().print(f"[yellow]warning[/] findings are told by requirement: {reason}")
    if json_file is not None:
        results.write(found, json_file)
    if html is not None:
        write_page(found, html)
    if every_row:
        show_rows(found, console())
    show_findings(found, console(), saved=next((str(file) for file in (html, json_file) if file), None))
    _say(merged.missing)
    raise SystemExit(found.exit_status)


def _document(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raises ValueError that names the file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"{path}: expected an object, got a {type(document).__name__}")
    return document


def _part(name: str, document: Mapping[str, Any]) -> Results:
    """Return the results of a document. Raises ValueError that names its file."""
    try:
        return Results.from_dict(document)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _matrix(documents: Mapping[str, Any], json_file: Path | None) -> NoReturn:
    # These build every mutant, which the parts of other runs need none of.
    from veriformer.verify.commands.mutants import end_of_matrix
    from veriformer.verify.mutants import merging as kills

    matrix, missing = kills.merge({name: kills.of_document(document) for name, document in documents.items()})
    if json_file is not None:
        results.write_json(matrix.to_dict(), json_file)
    _say(missing)
    if missing:
        raise SystemExit(_INVALID)
    end_of_matrix(matrix, [])


def _unlike(merged: merging.Merged) -> str | None:
    """Return the reason why findings cannot be diagnosed on this machine; None where they can."""
    import torch

    from veriformer.verify.engine.probe import probe
    from veriformer.workers.versions import differences

    plan, there = merged.plan, merged.results.implementation
    if plan.device.startswith("cuda") and not torch.cuda.is_available():
        return f"there is no {plan.device} here"
    different = differences(merging.versions_of(plan.target), merged.versions)
    if different:
        return "here is not what was there: " + "; ".join(different)
    try:
        here = probe(plan.target, plan.device).implementation
    except TargetError as error:
        return str(error)
    alike = merging.anywhere(here) == merging.anywhere(there)
    return None if alike else f"{plan.target} has version {here['version']} here, {there['version']} there"


def _invalid(error: Exception) -> NoReturn:
    click.echo(f"veriformer: {error}", err=True)
    raise SystemExit(_INVALID)


def _say(missing: Sequence[str]) -> None:
    for line in missing:
        click.echo(f"veriformer: {line}", err=True)
