"""``veriformer bench counts``: what operations cost, without a clock."""

from __future__ import annotations

import os
from pathlib import Path

import click

from veriformer.bench.commands import options
from veriformer.bench.commands.options import JSON, refuse, write


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]…")
@click.option("--only", multiple=True, metavar="OPERATION", help="Count this operation alone; may be repeated.")
@click.option(
    "--claim",
    type=click.Choice(["as printed", "in blocks"]),
    help="How TARGET is said to compute attention; in blocks, it may hold no n × n scores and repeat no keys.",
)
@click.option("--every", is_flag=True, help="Show every count, not one line for each operation.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores", help="Processes.")
@click.option(
    "--scheduler",
    metavar="ADDRESS|FILE",
    help="Count on the workers of a Dask scheduler, an operation at a time.",
)
@JSON
def counts(
    targets: tuple[str, ...],
    only: tuple[str, ...],
    claim: str | None,
    every: bool,
    jobs: int,
    scheduler: str | None,
    json_file: Path | None,
) -> None:
    """Count what operations cost, exactly and without a clock, and compare it with the symbolic cost.

    TARGET is a file (path/to/mine.py), a module (pkg.mod), an attribute of either (pkg.mod:thing), or one of torch,
    impl, impl:reference, impl:tiled, impl:sdpa, impl:flex. Of every operation of the contract that it carries are
    counted: FLOPs of matrix products, bytes that operators read and write, bytes held at the worst moment and beside
    arguments and results, calls of operators and allocations; forward, and forward and backward. Without a TARGET,
    the attention of impl:reference, impl:tiled and impl:sdpa alone is counted.

    Calls run on tensors without memory where they can, else on small real ones. Each quantity is counted on a grid as
    large as its degrees ask, and off it; the polynomial through the counts is exact. FLOPs and kept bytes must be the
    specification's at every call. Bytes moved and extra bytes may have other factors, which are said, but grow no
    faster. What the backward pass computes again (checkpointing) is said, and allowed up to one forward pass. A step of
    an optimizer in which the host asks for a value of an array is refuted. What runs inside a fused kernel is not seen:
    its FLOPs are then a formula's, and said to be modelled. Where there is none, the operation is not countable.

    \b
    Examples:
      veriformer bench counts mine.py
      veriformer bench counts mine.py:Flash --only attention --claim 'in blocks'
      veriformer bench counts torch --json benchmarks.json

    \b
    Exit status: 0 no count refutes the specification, 1 at least one does, 2 unusable arguments, 130 interrupted, with
    what was counted shown and written.
    """
    options.check_targets(targets)
    options.check_only(only)
    options.check_scheduler(scheduler)
    # These import PyTorch, which takes longer than all that is checked before.
    from veriformer.bench.counting import command
    from veriformer.bench.counting.items import Given, items
    from veriformer.bench.targets import NAMES, UnknownTargetError

    given = Given(tuple(dict.fromkeys(targets or NAMES)), claim)
    try:
        wanted = items(given.targets, only, whole=bool(targets))
        found, interrupted = command.run(given, wanted, scheduler or jobs, every=every)
    except (UnknownTargetError, command.PlaceError) as error:
        refuse(error)
    write(found, json_file)
    raise SystemExit(130 if interrupted else found.exit_status)
