"""``veriformer bench scaling``: how times grow with sizes."""

from __future__ import annotations

from pathlib import Path

import click

from veriformer.bench.commands import options
from veriformer.bench.commands.options import CLOCK, DEVICE, JSON, check_device, clock_of, refuse, write


@click.command()
@click.argument("target", default="impl")
@click.option("--only", multiple=True, metavar="SELECT", help="An operation, or a glob over names; may be repeated.")
@click.option("--processes", type=click.IntRange(2), default=4, show_default=True, help="Fresh processes that measure.")
@CLOCK
@DEVICE
@JSON
def scaling(
    target: str, only: tuple[str, ...], processes: int, clock: str | None, device: str, json_file: Path | None
) -> None:
    """Time how operations of TARGET grow with each of their sizes, against the elasticity that the formulas predict.

    TARGET is as for counts. Sizes go from where the work outweighs the launch of a call to what time and memory allow.
    Every size is timed in several fresh processes, in random order; the slope ∂ log t / ∂ log size is Theil and Sen's,
    its interval a bootstrap over processes. It is confirmed where two one-sided tests place it in the band of what the
    costs of the specification predict, refuted where it lies outside, with Holm's correction over all sizes; else
    inconclusive. What is quicker than its matrix products can be is invalid.

    \b
    Examples:
      veriformer bench scaling mine.py --only attention
      veriformer bench scaling impl --only 'transformer_block over n*' --clock cpu

    \b
    Exit status: 0 nothing is refuted, 1 at least one is, 2 unusable arguments, 130 interrupted.
    """
    options.check_only(only)
    clock = clock_of(clock, device)
    options.check_targets([target])
    # These import PyTorch, which takes longer than all that is checked before.
    from veriformer.bench.scaling import measure, sweeps
    from veriformer.bench.timing.arms import ArmError

    chosen = sweeps.chosen(only)
    if not chosen:
        refuse(f"--only: nothing is named so; one of {', '.join(dict.fromkeys(s.operation for s in sweeps.SWEEPS))}")
    check_device(device)
    try:
        found = measure.run(target, chosen, measure.Plan(processes, clock, device))
    except ArmError as error:
        refuse(error)
    write(found, json_file)
    raise SystemExit(found.exit_status)
