"""Times of several things on a GPU, measured in turns, so that clocks, heat and neighbours are shared by all."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from statistics import median, quantiles

import torch

_LEAD_CYCLES = 2_000_000  # about a millisecond, in which the CPU gets ahead of the GPU


def interleaved(runs: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 3) -> dict[str, list[float]]:
    """Seconds of each run in each round. In a round each runs once, in random order, and finds the L2 cache flushed.

    The GPU is kept busy until a run has been launched as a whole: its time is the GPU's, not that of Python.
    """
    for run in runs.values():
        for _ in range(warm_up):
            run()
    order = list(runs)
    found: dict[str, list[float]] = {name: [] for name in runs}
    flush = torch.empty(256 * 2**20, dtype=torch.uint8, device="cuda")
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            found[name].append(_time(runs[name], flush))
    return found


def _time(run: Callable[[], object], flush: torch.Tensor) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    flush.zero_()
    torch.cuda._sleep(_LEAD_CYCLES)  # type: ignore[no-untyped-call]
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def spread(seconds: list[float]) -> tuple[float, float]:
    """The median, and half the distance between the quartiles relative to it."""
    middle = median(seconds)
    low, _, high = quantiles(seconds, n=4)
    return middle, (high - low) / 2 / middle
