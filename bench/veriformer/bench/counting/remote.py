"""Counts on the workers of a Dask scheduler: an operation is one item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from veriformer.bench.counting.items import Given, Item
from veriformer.bench.counting.jobs import Tell
from veriformer.bench.document import Count
from veriformer.workers import session
from veriformer.workers.controller import Controller
from veriformer.workers.files import sources
from veriformer.workers.versions import versions

_LIMIT_S = 3600.0


class WorkError(Exception):
    """An operation could not be counted on a worker; the message says which and why."""


class Counting:
    """Counts where it is made, one item after the other."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.given = Given(tuple(payload["words"]), payload["variant"], payload["names"])

    def run(self, item: str, extra: Any) -> list[list[dict[str, Any]]]:
        """The counts of one operation, for each target that shares it."""
        return [[asdict(one) for one in some] for some in self.given.count(Item.read(item))]


def count(given: Given, wanted: Sequence[Item], scheduler: str, tell: Tell, say: Callable[[str], None]) -> None:
    """Count every item, and tell the counts of each as they come. Raises WorkError."""
    files = {word: sources(word.partition(":")[0]) for word in given.words}
    there = {word: _there(word) if files[word] else word for word in given.words}
    asked = session.Session(
        work=f"{__name__}:Counting",
        payload={
            "words": list(there.values()),
            "variant": given.variant,
            "names": {away: word for word, away in there.items()},
        },
        files={name: text for some in files.values() for name, text in some.items()},
        versions=versions(),
    )

    def receive(item: session.Item, outcome: session.Outcome) -> None:
        if outcome.value is None:
            raise WorkError(f"{item.name}: {outcome.error or 'the process that counted it ended with it'}")
        tell(Item.read(item.name), [[Count.from_dict(one) for one in some] for some in outcome.value])

    with Controller(scheduler, asked, say=say) as side:
        say(f"dashboard {side.dashboard}")
        side.run([session.Item(name=str(item), limit_s=_LIMIT_S) for item in wanted], receive)


def _there(word: str) -> str:
    place, colon, attribute = word.partition(":")
    return f"{Path(place).name}{colon}{attribute}" if place.endswith(".py") else word
