"""The command of this package: ``bench``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from veriformer.bench.document import Benchmarks


_FILE = click.Path(dir_okay=False, path_type=Path)
_JSON = click.option("--json", "json_file", type=_FILE, help="Write benchmarks.json here.")


@click.group()
def bench() -> None:
    """What an implementation costs, against what the specification predicts."""


@bench.command()
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
    "--scheduler", metavar="ADDRESS|FILE", help="Count on the workers of a Dask scheduler, an operation at a time."
)
@_JSON
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
    the attention of the shipped backends alone is counted.

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
    from veriformer.bench.counting import command
    from veriformer.bench.counting.items import Given, items
    from veriformer.bench.targets import NAMES, UnknownTargetError

    given = Given(tuple(dict.fromkeys(targets or NAMES)), claim)
    try:
        wanted = items(given.targets, only, whole=bool(targets))
        _check_only(only)
        found, interrupted = command.run(given, wanted, scheduler or jobs, every=every)
    except (UnknownTargetError, command.PlaceError) as error:
        _refuse(error)
    _write(found, json_file)
    raise SystemExit(130 if interrupted else found.exit_status)


def _check_only(only: tuple[str, ...]) -> None:
    from veriformer.bench.operations.catalogue import names

    for name in only:
        if name not in names():
            _refuse(f"--only: expected an operation of the contract, got {name!r}; one of {', '.join(names())}")


@bench.command()
@click.argument("target", default="impl")
@click.option("--profile", default="quick", show_default=True, help="Profile of the verification.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores", help="Workers.")
@click.option("--only", multiple=True, metavar="SELECT", help="As for verify.")
def verification(target: str, profile: str, jobs: int, only: tuple[str, ...]) -> None:
    """Time a verification, and show where its time goes: to examples of which operation, or to starting up.

    \b
    Exit status: 0 measured, 2 unusable arguments or target.
    """
    from rich.console import Console

    from veriformer.bench.verification import RunError, measure, show

    try:
        found = measure(target, profile, jobs, only)
    except RunError as error:
        _refuse(error)
    show(found, Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 120))


@bench.command()
@click.argument("cases", nargs=-1, metavar="[CASE]…")
@click.option("--rounds", type=click.IntRange(min=6), default=15, show_default=True, help="Turns of each side.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=20,
    show_default=True,
    help="After this time a comparison begins no further round, once it has 6.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of PyTorch; its own number by default.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="cpu: seconds of this process alone, for a machine that others use; fair between sides of one thread.",
)
@_JSON
def peers(
    cases: tuple[str, ...], rounds: int, seconds: float, threads: int | None, clock: str, json_file: Path | None
) -> None:
    """Time ours beside what others would use, on this processor, as ratios of sides that take turns.

    CASE is one of training-128, training-384, compiled-128, compiled-384, vocabulary, decode-1, decode-8, prefill-1,
    prefill-8, rowwise, tiled, adamw; all of them where none is named. Sides: a plain torch.nn GPT, GPT2LMHeadModel of
    transformers and a decoder of x-transformers (if they are installed), SDPA, torch.nn.functional, torch.optim.AdamW,
    and what a large matrix product and one reading of memory reach here.

    In each round every side runs once, in random order, and ours twice: the ratio of ours to itself is the noise, and a
    goal is confirmed or refuted only where neither it nor the interval of the median (95 %) leaves a doubt.

    \b
    Exit status: 0 no goal is refuted, 1 at least one is, 2 unusable arguments, 130 interrupted, with what was finished
    shown and written.
    """
    from veriformer.bench.peers import command
    from veriformer.bench.peers.catalogue import CASES, UnknownCaseError, find

    try:
        chosen = [find(name) for name in dict.fromkeys(cases or CASES)]
    except UnknownCaseError as error:
        _refuse(error)
    found, interrupted = command.run(chosen, rounds, seconds, threads, clock)
    _write(found, json_file)
    raise SystemExit(130 if interrupted else found.exit_status)


_CLOCK = click.option(
    "--clock",
    type=click.Choice(["wall", "cpu", "device", "device cold"]),
    help="Seconds by the wall, of the process' own processor, or on a GPU by events, with the L2 cache flushed before "
    "each run (cold) or not. By default wall on a CPU and device cold on a GPU.",
)
_DEVICE = click.option("--device", default="cpu", show_default=True, help="Where the calls run, such as cuda.")


@bench.command()
@click.argument("target", default="impl")
@click.option("--only", multiple=True, metavar="SELECT", help="An operation, or a glob over names; may be repeated.")
@click.option("--processes", type=click.IntRange(2), default=4, show_default=True, help="Fresh processes that measure.")
@_CLOCK
@_DEVICE
@_JSON
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
    from veriformer.bench.scaling import command, measure, sweeps
    from veriformer.bench.timing.arms import ArmError

    chosen = sweeps.chosen(only)
    if not chosen:
        _refuse(f"--only: nothing is named so; one of {', '.join(dict.fromkeys(s.operation for s in sweeps.SWEEPS))}")
    _check_device(device)
    try:
        found = command.run(target, chosen, measure.Plan(processes, _clock(clock, device), device))
    except ArmError as error:
        _refuse(error)
    _write(found, json_file)
    raise SystemExit(found.exit_status)


@bench.command()
@click.argument("base")
@click.argument("head")
@click.option("--target", help="What to time in both, where they are checkouts or wheels; impl by default.")
@click.option("--only", multiple=True, metavar="SELECT", help="An operation, or a glob over names; may be repeated.")
@click.option("--blocks", type=click.IntRange(2), default=5, show_default=True, help="Pairs of fresh processes.")
@click.option(
    "--relative",
    type=click.FloatRange(0, min_open=True),
    default=0.03,
    show_default=True,
    help="A smaller share is no change.",
)
@click.option(
    "--absolute", type=click.FloatRange(0), default=2e-6, show_default=True, help="Fewer seconds are no change."
)
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
@_CLOCK
@_DEVICE
@_JSON
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
    from veriformer.bench.regression import command, measure
    from veriformer.bench.regression.history import HistoryError
    from veriformer.bench.statistics.blocks import Floors
    from veriformer.bench.timing import workloads
    from veriformer.bench.timing.arms import ArmError

    names = workloads.names(only)
    if not names:
        _refuse(f"--only: nothing is named so; one of {', '.join(workloads.names())}")
    _check_device(device)
    plan = measure.Plan(blocks, device=device, clock=_clock(clock, device), floors=Floors(relative, absolute))
    try:
        found, interrupted = command.compare(base, head, target, names, plan)
        _write(found, json_file)
        command.write(found, markdown, stored)
        if history is not None:
            for line in command.keep(history, found, head, device):
                click.echo(line)
            _write(found, json_file)
    except (ArmError, HistoryError, OSError) as error:
        _refuse(error)
    raise SystemExit(130 if interrupted else command.status(found.regressions))


@bench.command()
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
    type=click.FloatRange(0, min_open=True),
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
@_CLOCK
@_DEVICE
@_JSON
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
    from veriformer.bench.regression import command, measure
    from veriformer.bench.regression.gate import Effort
    from veriformer.bench.timing import workloads
    from veriformer.bench.timing.arms import ArmError

    names = workloads.names(only)
    if not names:
        _refuse(f"--only: nothing is named so; one of {', '.join(workloads.names())}")
    _check_device(device)
    effort = Effort(tries, planted, 60 * minutes)
    try:
        found = command.try_gate(
            target, names, effort, simulations, measure.Plan(device=device, clock=_clock(clock, device))
        )
    except ArmError as error:
        _refuse(error)
    _write(found, json_file)
    assert found.gate is not None
    raise SystemExit(int(any(one.interval[0] > 0.01 for one in found.gate.false_alarms)))


def _clock(named: str | None, device: str) -> str:
    if named is None:
        return "device cold" if device.startswith("cuda") else "wall"
    if named.startswith("device") and not device.startswith("cuda"):
        _refuse(f"--clock {named}: expected a GPU; add --device cuda, or take wall or cpu")
    return named


def _check_device(device: str) -> None:
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        _refuse(f"--device {device}: {str(error).splitlines()[0]}")


def _write(found: Benchmarks, file: Path | None) -> None:
    from veriformer.bench import document

    if file is not None:
        try:
            document.write(found, file)
        except OSError as error:
            _refuse(f"--json: expected a file that can be written: {error}")


@bench.command("gpu-attention")
@click.option("--length", "lengths", type=click.IntRange(min=16), multiple=True, help="n; 512 to 16384 by default.")
@click.option("--width", "widths", type=click.IntRange(16, 256), multiple=True, help="d; 64 and 128 by default.")
@click.option("--dtype", type=click.Choice(["bfloat16", "float16"]), default="bfloat16", show_default=True)
@click.option("--rounds", type=click.IntRange(min=4), default=30, show_default=True, help="Turns of each contender.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all rates here.")
def gpu_attention(
    lengths: tuple[int, ...], widths: tuple[int, ...], dtype: str, rounds: int, json_file: Path | None
) -> None:
    """Time attention on a GPU, forward and backward: our Triton kernels beside PyTorch's kernels.

    Each contender (SDPA's flash, cuDNN and efficient kernels, FlexAttention) is judged against the specification
    first, output and gradients; a wrong one is not timed. Then all take turns in random order, the L2 cache flushed
    between them. Rates count the products of visible pairs: 4 n² d forward and 10 n² d backward, half when causal.

    \b
    Exit status: 0 timed, 1 a contender is wrong, 2 unusable arguments, or no GPU to time on.
    """
    import torch

    if not torch.cuda.is_available():
        _refuse("gpu-attention: expected a CUDA device, got none; run it on a machine with one")
    from veriformer.bench import gpu_attention as timed

    try:
        found = []
        for rates in timed.measure(lengths or timed.LENGTHS, widths or timed.WIDTHS, dtype, rounds):
            click.echo(timed.line(rates))
            found += rates
    except RuntimeError as error:
        _refuse(error)
    if json_file is not None:
        _write_rates([rate.to_dict() for rate in found], json_file)
    raise SystemExit(int(any(rate.wrong for rate in found)))


def _write_rates(rates: list[dict[str, object]], file: Path) -> None:
    import torch

    from veriformer.bench.environment import environment, suite

    device = {"device": torch.cuda.get_device_name()}
    record = {"suite": suite(), "environment": environment() | device, "rates": rates}
    try:
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        _refuse(f"--json: expected a file that can be written: {error}")


def _refuse(message: object) -> NoReturn:
    """End with the status of unusable arguments and a message, without a traceback."""
    click.echo(f"veriformer: {message}", err=True)
    raise SystemExit(2)
