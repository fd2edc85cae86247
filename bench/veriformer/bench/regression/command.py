"""``bench regression`` and ``bench aa``: the whole of one comparison, as a person asks for it."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_benchmark.plugin import pytest_benchmark_generate_machine_info
from pytest_benchmark.stats import Stats
from pytest_benchmark.utils import get_commit_info

from veriformer.bench.document import Benchmarks, Tries, begin
from veriformer.bench.regression import gate, history
from veriformer.bench.regression.measure import Plan, Series, measure
from veriformer.bench.regression.record import SIGNS, Regression, changes, ranked, record
from veriformer.bench.regression.record import line as one_line
from veriformer.bench.regression.record import markdown as as_markdown
from veriformer.bench.regression.record import summary as summarise
from veriformer.bench.statistics import Change, Share
from veriformer.bench.terminal import Progress, console, show
from veriformer.bench.timing.arms import arm
from veriformer.bench.timing.conditions import fingerprint, load


def pytest_benchmark_document(
    seconds: Mapping[str, Sequence[float]], extra: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the document that ``pytest-benchmark compare`` reads: the seconds of each benchmark, and further facts on
    it.
    """
    return {
        "machine_info": pytest_benchmark_generate_machine_info(),  # type: ignore[no-untyped-call]
        "commit_info": get_commit_info(),  # type: ignore[no-untyped-call]
        "benchmarks": [_benchmark(name, times, dict(extra.get(name, {}))) for name, times in seconds.items()],
        "datetime": datetime.now(UTC).isoformat(),
        "version": "5.0.0",
    }


def _benchmark(name: str, seconds: Sequence[float], extra: dict[str, Any]) -> dict[str, Any]:
    found = Stats()  # type: ignore[no-untyped-call]
    for value in seconds:
        found.update(value)  # type: ignore[no-untyped-call]
    shown = {field: getattr(found, field) for field in found.fields}
    return {
        "group": None,
        "name": name,
        "fullname": f"veriformer::{name}",
        "params": None,
        "param": None,
        "extra_info": extra,
        "options": {},
        "stats": {**shown, "iterations": 1, "data": list(seconds)},
    }


_BUSY = 1.5
"""Waiting programs for each processor above which the machine is called busy."""


def compare(base: str, head: str, target: str | None, workloads: Sequence[str], plan: Plan) -> tuple[Benchmarks, bool]:
    """Measure, show and give what was found, and whether a person ended it. Raises ArmError."""
    whole = begin()
    if load() > _BUSY:
        console(sys.stdout).print(
            f"busy: {load():.1f} programs wait for each processor; --clock cpu is less disturbed by them"
        )
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
    found = ranked(record(one, base, head, plan, machine) for one in measured)
    show(found, SIGNS, one_line, summarise(found))
    return whole(regressions=found), interrupted


def write(found: Benchmarks, markdown: Path | None, stored: Path | None) -> None:
    """Write the table for a pull request, and the head's times as pytest-benchmark stores them."""
    if markdown is not None:
        markdown.write_text(as_markdown(found.regressions), encoding="utf-8")
    if stored is not None:
        measured = [one for one in found.regressions if one.seconds]
        seconds = {one.workload: [s for turns in one.turns["head"] for s in turns] for one in measured}
        extra = {one.workload: {"verdict": one.verdict.value, "ratio": one.ratio} for one in measured}
        stored.write_text(json.dumps(pytest_benchmark_document(seconds, extra), indent=1) + "\n", encoding="utf-8")


def try_gate(target: str, workloads: Sequence[str], effort: gate.Effort, simulations: int, plan: Plan) -> Benchmarks:
    """Return both error rates of the gate, shown as they are known. Raises ArmError."""
    whole, out = begin(), console(sys.stdout)

    def tell(one: Tries) -> None:
        out.print(f"{one.what}: {Share(one.count, one.tries)}", markup=False)

    out.print("verdicts slower or faster on identical code, and slower on planted slowdowns")
    with Progress() as progress:
        found = gate.assess(target, workloads, effort, simulations, plan, progress.tell, tell)
    return whole(gate=found)


def keep(file: Path, found: Benchmarks, version: str, device: str) -> list[str]:
    """Append to a history, put that of this machine beside what was found, and say where it changed.

    Raises HistoryError.
    """
    whole = history.extend(file, found.regressions, version)
    here = fingerprint(device)
    elsewhere = int((whole["fingerprint"] != here).sum())
    found.histories = history.histories(whole, here)
    lines = changes(found.histories)
    return lines + ([f"{elsewhere} earlier times are of another machine: not comparable"] if elsewhere else [])


def status(found: Sequence[Regression]) -> int:
    """Return 1 where something is slower, 3 where nothing could be measured, else 0."""
    if any(one.verdict is Change.SLOWER for one in found):
        return 1
    return 3 if all(one.verdict is Change.INVALID for one in found) else 0
