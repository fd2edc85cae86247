"""``bench scaling``: the whole of one run, as a person asks for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from veriformer.bench.document import Benchmarks
from veriformer.bench.environment import environment
from veriformer.bench.progress import Progress
from veriformer.bench.scaling import terminal
from veriformer.bench.scaling.judge import judge
from veriformer.bench.scaling.measure import Plan, measure
from veriformer.bench.scaling.sweeps import Sweep
from veriformer.spec import suite


def run(target: str, sweeps: Sequence[Sweep], plan: Plan) -> Benchmarks:
    """Measure, judge and show. Raises ArmError."""
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    with Progress() as progress:
        found = terminal.ranked(judge(target, measure(target, sweeps, plan, progress.tell)))
    console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)
    for one in found:
        sign, style = terminal.SIGNS[one.verdict]
        console.print(Text(sign, style=style), terminal.line(one), markup=False, soft_wrap=True)
    console.print(terminal.summary(found), markup=False)
    seconds = round(time.perf_counter() - begin, 3)
    return Benchmarks(
        suite=suite.record(), environment=environment(), started=started, duration_s=seconds, scalings=found
    )
