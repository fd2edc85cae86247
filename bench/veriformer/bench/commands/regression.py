"""``veriformer bench regression``: whether a state is slower than another; ``bench aa``: error rates of that gate."""

from __future__ import annotations

from pathlib import Path

import click

from veriformer.bench.commands import options
from veriformer.bench.commands.options import CLOCK, DEVICE, JSON, check_device, clock_of, refuse, write
from veriformer.spec.refused_arguments import FiniteRange


@click.command()
@click.argument("base")
@click.argument("head")
@click.option("--target", help="What to time in both, where they are checkouts or wheels; impl by default.")
@click.option("--only", multiple=True, metavar="SELECT", help="An operation, or a glob over names; may be repeated.")
@click.option("--blocks", type=click.IntRange(2), default=5, show_default=True, help="Pairs of fresh processes.")
@click.option(
    "--relative",
    type=FiniteRange(0, min_open=True),
    default=0.03,
    show_default=True,
    help="A smaller share is no change.",
)
@click.option("--absolute", type=FiniteRange(0), default=2e-6, show_default=True, help="Fewer seconds are no change.")
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append to this Parquet file, and say where times changed.",
)
@click.option(
    "--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write a table for a pull request here."
)
@click.option(
    "--pytest-benchmark",
    "stored",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the head's times here, as pytest-benchmark stores them.",
)
@CLOCK
@DEVICE
@JSON
def regression(
    base: str,
    head: str,
    target: str | None,
    only: tuple[str, ...],
    blocks: int,
    relative: float,
    absolute: float,
    history: Path | None,
    markdown: Path | None,
    stored: Path | None,
    clock: str | None,
    device: str,
    json_file: Path | None,
) -> None:
    """Tell whether HEAD is slower than BASE: two checkouts (folders), two wheels, or two targets.

    Pairs of fresh processes take turns in the order ABBA. A workload is slower only where the mean ratio exceeds both
    floors, Student's test is sure at 1 %, all pairs of processes agree, and a fresh pair confirms it. It is the same
    where two one-sided tests place the ratio within the floor; else ambiguous. On a GPU, what was measured while clocks
    were throttled does not count.

    \b
    Examples:
      veriformer bench regression ../main . --target my_kernels --only attention
      veriformer bench regression old.whl new.whl --history times.parquet --markdown comment.md
      veriformer bench regression impl:reference impl:sdpa --only attention --clock cpu

    \b
    Exit status: 0 nothing is slower, 1 at least one workload is, 2 unusable arguments, 3 nothing could be measured,
    130 interrupted, with what was finished shown and written.
    """
    options.check_only(only)
    clock = clock_of(clock, device)
    options.check_arms((base, head), target)
    # These import PyTorch, which takes longer than all that is checked before.
    from veriformer.bench.regression import command, measure
    from veriformer.bench.regression.history import HistoryError
    from veriformer.bench.statistics import Floors
    from veriformer.bench.timing.arms import ArmError

    names = _workloads(only, device)
    plan = measure.Plan(blocks, device=device, clock=clock, floors=Floors(relative, absolute))
    try:
        found, interrupted = command.compare(base, head, target, names, plan)
        write(found, json_file)
        command.write(found, markdown, stored)
        if history is not None:
            for line in command.keep(history, found, head, device):
                click.echo(line)
            write(found, json_file)
    except (ArmError, HistoryError, OSError) as error:
        refuse(error)
    raise SystemExit(130 if interrupted else command.status(found.regressions))


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
    options.check_only(only)
    clock = clock_of(clock, device)
    options.check_targets([target])
    # These import PyTorch, which takes longer than all that is checked before.
    from veriformer.bench.regression import command, measure
    from veriformer.bench.regression.gate import Effort
    from veriformer.bench.timing.arms import ArmError

    names = _workloads(only, device)
    effort = Effort(tries, planted, 60 * minutes)
    try:
        found = command.try_gate(target, names, effort, simulations, measure.Plan(device=device, clock=clock))
    except ArmError as error:
        refuse(error)
    write(found, json_file)
    assert found.gate is not None
    raise SystemExit(int(any(one.interval[0] > 0.01 for one in found.gate.false_alarms)))


def _workloads(only: tuple[str, ...], device: str) -> list[str]:
    """Return the names of the chosen workloads; refuse where there are none, and a device that is not there."""
    from veriformer.bench.timing import workloads

    names = workloads.names(only)
    if not names:
        refuse(f"--only: nothing is named so; one of {', '.join(workloads.names())}")
    check_device(device)
    return names
