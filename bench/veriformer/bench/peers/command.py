"""``bench peers``: the whole of one run, as a person asks for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import torch

from veriformer.bench.document import Benchmarks
from veriformer.bench.environment import environment
from veriformer.bench.peers.case import Case, Schedule
from veriformer.bench.peers.terminal import Show
from veriformer.spec import suite


def run(cases: Sequence[Case], rounds: int, seconds: float, threads: int | None, clock: str) -> tuple[Benchmarks, bool]:
    """Run the cases; return the benchmarks and whether they were interrupted."""
    if threads is not None:
        torch.set_num_threads(threads)
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    found, interrupted = [], False
    with Show(sys.stdout, sys.stderr) as show:
        schedule = Schedule(rounds, clock, show.progress, seconds)
        try:
            for case in cases:
                for one in case(schedule):
                    found.append(show.tell(one))  # noqa: PERF401, for what was found before an interrupt counts
        except KeyboardInterrupt:
            interrupted = True
        show.summarise(found)
    duration = round(time.perf_counter() - begin, 3)
    whole = Benchmarks(
        suite=suite.record(), environment=environment(), started=started, duration_s=duration, peers=found
    )
    return whole, interrupted
