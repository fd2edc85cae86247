"""``bench counts``: the whole of one run, as a person asks for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from veriformer.bench.counting.items import CLAIMED, Given, InOrder, Item
from veriformer.bench.document import Benchmarks, Count, begin, from_entry
from veriformer.bench.terminal import Show
from veriformer.workers import session
from veriformer.workers.address import NoSchedulerError
from veriformer.workers.files import sources
from veriformer.workers.processes import Processes
from veriformer.workers.versions import versions

Tell = Callable[[Item, Sequence[list[Count]]], None]
_LOST = "the process that counted it ended with it"
_LIMIT_S = 3600.0


class PlaceError(Exception):
    """Nothing can be counted at the place that was asked for; the message says why."""


def run(given: Given, wanted: Sequence[Item], where: int | str, *, every: bool) -> tuple[Benchmarks, bool]:
    """Count the items; return the counts and whether they were interrupted.

    where: how many processes of this machine count, or the scheduler whose workers do. every: show each count in a line
    of its own. Raises PlaceError.
    """
    whole = begin()
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
            count(given, wanted, where, tell, lambda text: print(text, file=sys.stderr, flush=True))
        except KeyboardInterrupt:
            interrupted = True
            show_all(order.rest())
        show.summarise(found)
    return whole(counts=found), interrupted


class Counting:
    """Counts where it is made, one item after the other."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.given = Given(tuple(payload["words"]), payload["variant"], payload["names"])

    def run(self, item: str, extra: Any) -> list[list[dict[str, Any]]]:
        """Return the counts of one operation, for each target that shares it."""
        return [[asdict(one) for one in some] for some in self.given.count(Item.read(item))]


def count(given: Given, wanted: Sequence[Item], where: int | str, tell: Tell, say: Callable[[str], None]) -> None:
    """Count every item, and tell the counts of each as they come. Raises PlaceError.

    An operation that ends its process on this machine is not countable; all others are counted nonetheless.
    """
    if isinstance(where, int) and min(where, len(wanted)) <= 1:
        for item in wanted:
            tell(item, given.count(item))
        return None

    def receive(one: session.Item, outcome: session.Outcome) -> None:
        item = Item.read(one.name)
        if outcome.value is not None:
            tell(item, [[from_entry(Count, entry) for entry in some] for some in outcome.value])
        elif outcome.error is None and isinstance(where, int):
            tell(item, given.lost(item, _LOST))
        else:
            raise PlaceError(f"{one.name}: {outcome.error or _LOST}")

    items = [session.Item(name=str(item), limit_s=_LIMIT_S) for item in wanted]
    if isinstance(where, int):
        with Processes(_session(given, {}), min(where, len(wanted))) as processes:
            return processes.run(items, receive)
    try:
        from veriformer.workers.controller import Controller
    except ImportError as error:
        raise PlaceError(f"--scheduler: {error}; pip install 'veriformer[distributed]' brings it") from error
    files = {word: sources(word.partition(":")[0]) for word in given.words}
    try:
        with Controller(where, _session(given, files), say=say) as side:
            say(f"dashboard {side.dashboard}")
            side.run(items, receive)
    except (session.ClusterError, session.LostError, NoSchedulerError) as error:
        raise PlaceError(str(error)) from error


def _session(given: Given, files: Mapping[str, Mapping[str, bytes]]) -> session.Session:
    """Return the shared state of the counts. files: by target those that have to travel, for workers elsewhere."""
    there = {word: _there(word) if files.get(word) else word for word in given.words}
    return session.Session(
        work=f"{__name__}:Counting",
        payload={
            "words": list(there.values()),
            "variant": given.variant,
            "names": {away: word for word, away in there.items()},
        },
        files={name: text for some in files.values() for name, text in some.items()},
        versions=versions() if files else {},
    )


def _there(word: str) -> str:
    place, colon, attribute = word.partition(":")
    return f"{Path(place).name}{colon}{attribute}" if place.endswith(".py") else word
