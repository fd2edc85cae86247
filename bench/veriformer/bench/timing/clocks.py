"""The clocks that a turn is measured with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

CLOCKS = ("wall", "cpu", "device", "device cold")


class Clock(Protocol):
    """Seconds of one turn: so many runs after each other."""

    def __call__(self, run: Callable[[], Any], repeats: int, /) -> float:
        """Seconds of one run, over some repeats."""
        ...


def clock(name: str) -> Clock:
    """The clock of that name.

    wall and cpu: seconds of one run, wall time or this process' own processor time. device: of one run on a GPU, by
    events on its stream. device cold: the same, with the L2 cache flushed before each run.
    """
    if name in ("wall", "cpu"):
        return _processor(time.perf_counter if name == "wall" else time.process_time)
    return _device(cold=name == "device cold")


def _processor(read: Callable[[], float]) -> Clock:
    def measure(run: Callable[[], Any], repeats: int) -> float:
        begin = read()
        for _ in range(repeats):
            run()
        return (read() - begin) / repeats

    return measure


def _device(*, cold: bool) -> Clock:
    flush = torch.empty(256 * 2**20 if cold else 0, dtype=torch.uint8, device="cuda")

    def measure(run: Callable[[], Any], repeats: int) -> float:
        events = []
        for _ in range(repeats):
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
            flush.zero_()
            pair[0].record()
            run()
            pair[1].record()
            events.append(pair)
        torch.cuda.synchronize()
        return sum(float(begin.elapsed_time(end)) for begin, end in events) / 1000 / repeats

    return measure
