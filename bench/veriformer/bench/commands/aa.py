"""``veriformer bench aa``: what the gate for regressions is worth."""

from __future__ import annotations

from pathlib import Path

import click

from veriformer.bench.commands import arguments
from veriformer.bench.commands.options import CLOCK, DEVICE, JSON, check_device, clock_of, refuse, write
from veriformer.spec.refused_arguments import FiniteRange


@click.command()
@click.argument("target", default="impl")
@click.option(
    "--only",
    multiple=True,
    metavar="SELECT",
    help="Workloads to try the gate on.",
    default=("rms_norm, all sizes, forward", "causal_lm, training step", "causal_lm, decoding"),
    show_default=True,
)
@click.option(
    "--tries", type=click.IntRange(0), default=30, show_default=True, help="Comparisons of identical code, in all."
)
@click.option(
    "--planted", type=click.IntRange(0), default=30, show_default=True, help="Comparisons with 10 % more work, in all."
)
@click.option(
    "--minutes",
    type=FiniteRange(0, min_open=True),
    default=20,
    show_default=True,
    help="No further comparison is begun after this time; each kind has its share of it.",
)
@click.option(
    "--simulations",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Comparisons on simulated times, of each kind.",
)
@CLOCK
@DEVICE
@JSON
def aa(
    target: str,
    only: tuple[str, ...],
    tries: int,
    planted: int,
    minutes: float,
    simulations: int,
    clock: str | None,
    device: str,
    json_file: Path | None,
) -> None:
    """Tell what the gate for regressions is worth: false alarms on identical code, planted slowdowns that it finds.

    Simulated times drift, differ from process to process and have bursts; on this machine TARGET is compared with
    itself, and with itself doing 10 % more of the same work: a training step, a decoding step and one operation, which
    share their pairs of processes. Every share is shown with the interval that holds its probability at 95 %.

    \b
    Examples:
      veriformer bench aa --tries 100 --planted 40 --minutes 20

    \b
    Exit status: 0 measured, 1 false alarms above 1 % beyond doubt, 2 unusable arguments.
    """
    arguments.check_only(only)
    clock = clock_of(clock, device)
    arguments.check_targets([target])
    # These import PyTorch, which takes longer than all that is checked before.
    from veriformer.bench.regression import command, measure
    from veriformer.bench.regression.gate import Effort
    from veriformer.bench.timing import workloads
    from veriformer.bench.timing.arms import ArmError

    names = workloads.names(only)
    if not names:
        refuse(f"--only: nothing is named so; one of {', '.join(workloads.names())}")
    check_device(device)
    effort = Effort(tries, planted, 60 * minutes)
    try:
        found = command.try_gate(target, names, effort, simulations, measure.Plan(device=device, clock=clock))
    except ArmError as error:
        refuse(error)
    write(found, json_file)
    assert found.gate is not None
    raise SystemExit(int(any(one.interval[0] > 0.01 for one in found.gate.false_alarms)))
