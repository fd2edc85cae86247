"""Counts by several processes of this machine: one operation at a time in each, whatever the target does to it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

from veriformer.bench.counting.items import Given, Item
from veriformer.bench.document import Count

Tell = Callable[[Item, Sequence[list[Count]]], None]
_LOST = "the process that counted it ended with it"


def count(given: Given, wanted: Sequence[Item], jobs: int, tell: Tell) -> None:
    """Count every item, and tell the counts of each as they come.

    An operation that ends its process is not countable; all others are counted nonetheless.
    """
    if min(jobs, len(wanted)) <= 1:
        for item in wanted:
            tell(item, given.count(item))
        return
    left = list(wanted)

    def told(item: Item, counts: Sequence[list[Count]]) -> None:
        left.remove(item)
        tell(item, counts)

    try:
        _together(given, wanted, min(jobs, len(wanted)), told)
    except BrokenProcessPool:
        while left:
            try:
                _together(given, tuple(left), 1, told)
            except BrokenProcessPool:  # of one process alone, what it was doing
                told(left[0], given.lost(left[0], _LOST))


def _together(given: Given, wanted: Sequence[Item], jobs: int, tell: Tell) -> None:
    """Count each item. Raises BrokenProcessPool where one ends its process."""
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _take_up, (replace(given),)
    )  # without what is loaded here
    try:
        futures = {pool.submit(_count, item): item for item in wanted}
        for future in futures if jobs == 1 else as_completed(futures):
            tell(futures[future], future.result())
    finally:
        for process in list((pool._processes or {}).values()):
            process.terminate()  # an interrupt waits for nothing
        pool.shutdown(wait=False, cancel_futures=True)


_given: Given


def _take_up(given: Given) -> None:
    global _given
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that has started this one
    import torch

    torch.set_num_threads(1)
    _given = given


def _count(item: Item) -> list[list[Count]]:
    return _given.count(item)
