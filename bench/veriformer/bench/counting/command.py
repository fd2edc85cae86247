"""``bench counts``: the whole of one run, as a person asks for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from veriformer.bench.counting import jobs
from veriformer.bench.counting.items import CLAIMED, Given, InOrder, Item
from veriformer.bench.document import Benchmarks, Count
from veriformer.bench.environment import environment
from veriformer.bench.terminal import Show
from veriformer.spec import suite


class PlaceError(Exception):
    """Nothing can be counted at the place that was asked for; the message says why."""


def run(given: Given, wanted: Sequence[Item], where: int | str, *, every: bool) -> tuple[Benchmarks, bool]:
    """Count the items; return the counts and whether they were interrupted.

    where: how many processes of this machine count, or the scheduler whose workers do. every: show each count in a line
    of its own. Raises PlaceError.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    found: list[Count] = []
    done: list[Item] = []
    order, interrupted = InOrder(wanted), False
    with Show(sys.stdout, sys.stderr) as show:

        def show_all(some: Iterable[tuple[str, list[Count]]]) -> None:
            for operation, counts in some:
                found.extend(show.tell_operation(counts, every=every or operation == CLAIMED))

        def tell(item: Item, counts: Sequence[list[Count]]) -> None:
            done.append(item)
            show.progress(len(done), len(wanted))
            show_all(order.take(item, counts))

        try:
            show.progress(0, len(wanted))
            _count(given, wanted, where, tell)
        except KeyboardInterrupt:
            interrupted = True
            show_all(order.rest())
        show.summarise(found)
    duration = round(time.perf_counter() - clock, 3)
    whole = Benchmarks(
        suite=suite.record(), environment=environment(), started=started, duration_s=duration, counts=found
    )
    return whole, interrupted


def _count(given: Given, wanted: Sequence[Item], where: int | str, tell: jobs.Tell) -> None:
    if isinstance(where, int):
        return jobs.count(given, wanted, where, tell)
    try:
        from veriformer.bench.counting import remote
        from veriformer.workers.address import NoSchedulerError
        from veriformer.workers.session import ClusterError, LostError
    except ImportError as error:
        raise PlaceError(f"--scheduler: {error}; pip install 'veriformer[distributed]' brings it") from error
    try:
        remote.count(given, wanted, where, tell, lambda text: print(text, file=sys.stderr, flush=True))
    except (remote.WorkError, ClusterError, LostError, NoSchedulerError) as error:
        raise PlaceError(str(error)) from error
    return None
