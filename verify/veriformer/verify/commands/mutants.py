"""``veriformer mutants``: the kill matrix of known bugs and variants."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.spec.suggestion import meant, some
from veriformer.verify import results
from veriformer.verify.commands.options import (
    BALANCE,
    INTERRUPTED,
    SCHEDULER,
    SEED,
    SHARD,
    check_shard,
    refuse,
    say,
)
from veriformer.verify.engine.arguments import JOBS, ExecutionError, check_scheduler
from veriformer.verify.targets import made_names

if TYPE_CHECKING:
    from veriformer.verify.mutants.matrix import KillMatrix


@click.command()
@click.argument("select", nargs=-1)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the whole matrix here."
)
@JOBS
@SEED
@click.option(
    "--shrink", is_flag=True, help="Seek a smallest counterexample of each killed mutant, and run its script."
)
@SHARD
@BALANCE
@SCHEDULER
def mutants(
    select: tuple[str, ...],
    json_file: Path | None,
    jobs: int,
    seed: str,
    shrink: bool,
    shard: tuple[int, int] | None,
    balance: Path | None,
    scheduler: str | None,
) -> None:
    """Measure the suite by what it catches.

    Runs every known bug as a mutant, every correct variant, and the sabotage adapters against the requirements of
    their operations, and prints who kills whom, after how many examples, who survives, and any false alarm.

    SELECT is an identifier (GQA-01), a family (mutant, variant, sabotage), an operation or a glob; everything by
    default. 'generic' runs small edits of our own source instead, 'generic:layers.*' those of some modules.

    \b
    Exit status: 0 every mutant killed (of generic ones, or else listed as a survivor with the reason), no variant
    accused, every sabotage caught, and every script that ran found its violation again; 1 otherwise;
    2 nothing matches SELECT; 3 the suite itself made an error; 130 interrupted. With --shard: 0 once the part is
    finished, whatever came of it, 3 where the suite itself made an error.
    """
    check_shard(shard, balance, json_file, None)
    _check_names(select)
    try:
        check_scheduler(scheduler)
    except ExecutionError as error:
        refuse(error)
    # These build every mutant and import PyTorch, which takes longer than all that is checked before.
    from veriformer.verify.engine.remote import cluster
    from veriformer.verify.mutants import matrix as matrices
    from veriformer.verify.mutants import merging
    from veriformer.verify.mutants.mutation_run import kill_matrix
    from veriformer.verify.mutants.terminal import LiveMatrix
    from veriformer.verify.presentation.progress import console

    wanted = merging.Wanted(select, seed, shrink)
    names = wanted.names()
    if not names:
        refuse(f"mutants: nothing matches {' '.join(select)!r}; expected one of {some(wanted.members())}")
    part = None
    if shard is not None:
        try:
            part = wanted.part(*shard, merging.seconds(balance) if balance else {})
        except ValueError as error:
            refuse(error)
        names = list(part.rows)
    with LiveMatrix(len(names), console()) as live:
        try:
            with nullcontext() if scheduler is None else cluster(scheduler, jobs=jobs) as place:
                matrix, interrupted = kill_matrix(
                    names, jobs=jobs, seed=seed, tell=live.tell, say=say, scheduler=place, shrink=shrink
                )
        except ExecutionError as error:
            refuse(error)
    matrix = replace(matrix, shard=part)
    if json_file is not None:
        document = matrix.to_dict()
        matrices.validate(document)
        results.write_json(document, json_file)
    if interrupted:
        raise SystemExit(INTERRUPTED)
    end_of_matrix(matrix, names)


def _check_names(select: Sequence[str]) -> None:
    """Refuse a word that no member and no operation is called by; generic edits are known once they are made."""
    if any(word.startswith("generic") for word in select):
        return
    members = [one for those in made_names.identifiers().values() for one in those]
    known = list(
        dict.fromkeys(
            (*made_names.identifiers(), *members, *made_names.members(), *(r.operation for r in REQUIREMENTS))
        )
    )
    for word in select:
        if not any(fnmatchcase(name, word) for name in known):
            close = meant(word, known)
            refuse(f"mutants: nothing matches {word!r}{close}; expected one of {some(members)}, or an operation")


def end_of_matrix(matrix: KillMatrix, names: Sequence[str]) -> NoReturn:
    """Show a matrix, say whom of these members it lacks, and end with the status that follows."""
    from rich.console import Console

    from veriformer.verify.mutants.terminal import show

    show(matrix, Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 200))
    missing = set(names) - {f"{cell.family}:{cell.member}" for cell in matrix.cells}
    if missing:
        click.echo(f"veriformer: the suite itself failed on {', '.join(sorted(missing))}", err=True)
    if matrix.shard is not None:
        raise SystemExit(3 if missing or matrix.errors else 0)
    raise SystemExit(3 if missing else matrix.exit_status)
