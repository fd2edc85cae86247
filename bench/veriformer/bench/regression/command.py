"""``bench regression``: the whole of one comparison, as a person asks for it."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from veriformer.bench.document import Benchmarks, Tries
from veriformer.bench.environment import environment
from veriformer.bench.progress import Progress
from veriformer.bench.regression import gate, history, terminal
from veriformer.bench.regression.measure import Plan, Series, measure
from veriformer.bench.regression.record import Regression, record
from veriformer.bench.statistics import pytest_format
from veriformer.bench.statistics.blocks import Change
from veriformer.bench.statistics.proportions import Share
from veriformer.bench.timing.arms import arm
from veriformer.bench.timing.conditions import fingerprint, load
from veriformer.spec import suite

_BUSY = 1.5
"""Waiting programs for each processor above which the machine is called busy."""


def compare(base: str, head: str, target: str | None, workloads: Sequence[str], plan: Plan) -> tuple[Benchmarks, bool]:
    """Measure, show and give what was found, and whether a person ended it. Raises ArmError."""
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)
    if load() > _BUSY:
        console.print(f"busy: {load():.1f} programs wait for each processor; --clock cpu is less disturbed by them")
    series = {name: Series(name) for name in workloads}
    interrupted = False
    with tempfile.TemporaryDirectory() as folder, Progress() as progress:
        arms = [arm(word, target, Path(folder)) for word in (base, head)]
        try:
            measure(arms[0], arms[1], series, plan, progress.tell)
        except KeyboardInterrupt:
            interrupted = True
    machine = fingerprint(plan.device)
    measured = [one for one in series.values() if not interrupted or one.blocks]
    found = terminal.ranked(record(one, base, head, plan, machine) for one in measured)
    for one in found:
        sign, style = terminal.SIGNS[one.verdict]
        console.print(Text(sign, style=style), terminal.line(one), markup=False, soft_wrap=True)
    console.print(terminal.summary(found), markup=False)
    seconds = round(time.perf_counter() - begin, 3)
    whole = Benchmarks(
        suite=suite.record(), environment=environment(), started=started, duration_s=seconds, regressions=found
    )
    return whole, interrupted


def write(found: Benchmarks, markdown: Path | None, stored: Path | None) -> None:
    """The table for a pull request, and the head's times as pytest-benchmark stores them."""
    if markdown is not None:
        markdown.write_text(terminal.markdown(found.regressions), encoding="utf-8")
    if stored is not None:
        measured = [one for one in found.regressions if one.seconds]
        seconds = {one.workload: [s for turns in one.turns["head"] for s in turns] for one in measured}
        extra = {one.workload: {"verdict": one.verdict.value, "ratio": one.ratio} for one in measured}
        stored.write_text(json.dumps(pytest_format.document(seconds, extra), indent=1) + "\n", encoding="utf-8")


def try_gate(target: str, workloads: Sequence[str], effort: gate.Effort, simulations: int, plan: Plan) -> Benchmarks:
    """Both error rates of the gate, shown as they are known. Raises ArmError."""
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)

    def tell(one: Tries) -> None:
        console.print(f"{one.what}: {Share(one.count, one.tries)}", markup=False)

    console.print("verdicts slower or faster on identical code, and slower on planted slowdowns")
    with Progress() as progress:
        found = gate.assess(target, workloads, effort, simulations, plan, progress.tell, tell)
    seconds = round(time.perf_counter() - begin, 3)
    return Benchmarks(suite=suite.record(), environment=environment(), started=started, duration_s=seconds, gate=found)


def keep(file: Path, found: Benchmarks, version: str, device: str) -> list[str]:
    """Append to a history, put that of this machine beside what was found, and say where it changed.

    Raises HistoryError.
    """
    whole = history.extend(file, found.regressions, version)
    here = fingerprint(device)
    elsewhere = int((whole["fingerprint"] != here).sum())
    found.histories = history.histories(whole, here)
    lines = terminal.changes(found.histories)
    return lines + ([f"{elsewhere} earlier times are of another machine: not comparable"] if elsewhere else [])


def status(found: Sequence[Regression]) -> int:
    """1 where something is slower, 3 where nothing could be measured, else 0."""
    if any(one.verdict is Change.SLOWER for one in found):
        return 1
    return 3 if all(one.verdict is Change.INVALID for one in found) else 0
