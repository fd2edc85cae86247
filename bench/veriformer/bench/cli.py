"""The command of this room: ``bench``."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from veriformer.bench.document import Benchmarks
    from veriformer.bench.peers.case import Case
    from veriformer.bench.targets import Target


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
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write benchmarks.json here."
)
def counts(
    targets: tuple[str, ...], only: tuple[str, ...], claim: str | None, every: bool, json_file: Path | None
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
    faster. What runs inside a fused kernel is not seen: its FLOPs are then a formula's, and said to be modelled. Where
    there is none, the operation is not countable.

    \b
    Examples:
      veriformer bench counts mine.py
      veriformer bench counts mine.py:Flash --only attention --claim 'in blocks'
      veriformer bench counts torch --json benchmarks.json

    \b
    Exit status: 0 no count refutes the specification, 1 at least one does, 2 unusable arguments.
    """
    from veriformer.bench import document
    from veriformer.bench.targets import NAMES, UnknownTargetError, find

    try:
        chosen = [find(name, claim) for name in dict.fromkeys(targets or NAMES)]
        _check_only(only)
    except UnknownTargetError as error:
        _refuse(error)
    found = _count(chosen, only, every=every, whole=bool(targets))
    if json_file is not None:
        try:
            document.write(found, json_file)
        except OSError as error:
            _refuse(f"--json: expected a file that can be written: {error}")
    raise SystemExit(found.exit_status)


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
@click.option("--threads", type=click.IntRange(min=1), help="Threads of PyTorch; its own number by default.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="cpu: seconds of this process alone, for a machine that others use; fair between sides of one thread.",
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write benchmarks.json here."
)
def peers(cases: tuple[str, ...], rounds: int, threads: int | None, clock: str, json_file: Path | None) -> None:
    """Time ours beside what others would use, on this processor, as ratios of sides that take turns.

    CASE is one of training-128, training-384, compiled-128, compiled-384, vocabulary, decode-1, decode-8, tiled, adamw;
    all of them where none is named. Sides: a plain torch.nn GPT, GPT2LMHeadModel of transformers (if it is installed),
    SDPA, torch.optim.AdamW, and what a large matrix product and one reading of memory reach here.

    In each round every side runs once, in random order, and ours twice: the ratio of ours to itself is the noise, and a
    goal is confirmed or refuted only where neither it nor the interval of the median (95 %) leaves a doubt.

    \b
    Exit status: 0 no goal is refuted, 1 at least one is, 2 unusable arguments, 130 interrupted, with what was finished
    shown and written.
    """
    from veriformer.bench import document
    from veriformer.bench.peers.catalogue import CASES, UnknownCaseError, find

    try:
        chosen = [find(name) for name in dict.fromkeys(cases or CASES)]
    except UnknownCaseError as error:
        _refuse(error)
    found, interrupted = _race(chosen, rounds, threads, clock)
    if json_file is not None:
        try:
            document.write(found, json_file)
        except OSError as error:
            _refuse(f"--json: expected a file that can be written: {error}")
    raise SystemExit(130 if interrupted else found.exit_status)


def _race(cases: list[Case], rounds: int, threads: int | None, clock: str) -> tuple[Benchmarks, bool]:
    """What was found, and whether somebody ended it before its time."""
    import torch

    from veriformer.bench.document import Benchmarks
    from veriformer.bench.environment import environment, suite
    from veriformer.bench.peers.case import Course
    from veriformer.bench.peers.showing import Show

    if threads is not None:
        torch.set_num_threads(threads)
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    found, interrupted = [], False
    with Show(sys.stdout, sys.stderr) as show:
        course = Course(rounds, clock, show.progress)
        try:
            for case in cases:
                for one in case(course):
                    found.append(show.tell(one))  # noqa: PERF401, for what was found before an interrupt counts
        except KeyboardInterrupt:
            interrupted = True
        show.summarise(found)
    duration = round(time.perf_counter() - begin, 3)
    whole = Benchmarks(suite=suite(), environment=environment(), started=started, duration_s=duration, peers=found)
    return whole, interrupted


def _count(targets: list[Target], only: tuple[str, ...], *, every: bool, whole: bool) -> Benchmarks:
    """Counts of all operations where whole, else of attention as each backend claims to compute it."""
    from veriformer.bench.assess import assess
    from veriformer.bench.counts import count
    from veriformer.bench.document import Benchmarks
    from veriformer.bench.environment import environment, suite
    from veriformer.bench.showing import Show

    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    found = []
    with Show(sys.stdout, sys.stderr) as show:
        for target in targets:
            claimed = count(target) if not only or "attention" in only else ()
            found += [show.tell(one) for one in show.watch(target.name, claimed)]
            for counts in assess(target, only) if whole else ():
                found += show.tell_operation(counts, every=every)
        show.summarise(found)
    duration = round(time.perf_counter() - clock, 3)
    return Benchmarks(suite=suite(), environment=environment(), started=started, duration_s=duration, counts=found)


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
    from veriformer.bench import gpu_attention as race

    try:
        found = []
        for rates in race.measure(lengths or race.LENGTHS, widths or race.WIDTHS, dtype, rounds):
            click.echo(race.line(rates))
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
