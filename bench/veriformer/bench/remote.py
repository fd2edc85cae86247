"""Counts on the workers of a Dask scheduler: an operation of a target is one item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from veriformer.bench.assess import assess
from veriformer.bench.counts import count
from veriformer.bench.document import Count
from veriformer.bench.operations.catalogue import names
from veriformer.bench.targets import Target, find
from veriformer.cluster.controller import Controller
from veriformer.cluster.files import sources
from veriformer.cluster.session import Item, Outcome, Session
from veriformer.cluster.versions import versions

CLAIMED = "as claimed"
"""The item of a target that holds its attention against the way in which it is said to be computed."""

_LIMIT_S = 3600.0


class WorkError(Exception):
    """An operation could not be counted on a worker; the message says which and why."""


class Counting:
    """Counts where it is made; an item is a target and an operation."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = payload

    def run(self, item: str, extra: Any) -> list[dict[str, Any]]:
        """The counts of one operation of one target."""
        name, _, operation = item.rpartition(" ")
        target = self._target(name)
        found = (
            count(target)
            if operation == _word(CLAIMED)
            else (one for some in assess(target, (operation,)) for one in some)
        )
        return [asdict(replace(one, target=name)) for one in found]

    @cache  # noqa: B019  # one object for the life of its process
    def _target(self, name: str) -> Target:
        return find(self.payload["there"][name], self.payload["claim"])


def counts(
    targets: Sequence[Target],
    only: Sequence[str],
    scheduler: str,
    *,
    claim: str | None,
    whole: bool,
    say: Callable[[str], None],
) -> Iterator[list[Count]]:
    """Counts of each operation, in the order in which one process gives them. Raises WorkError."""
    files = {target.name: sources(target.name.partition(":")[0]) for target in targets}
    there = {target.name: _there(target.name) if files[target.name] else target.name for target in targets}
    session = Session(
        work=f"{__name__}:Counting",
        payload={"there": there, "claim": claim},
        files={name: text for some in files.values() for name, text in some.items()},
        versions=versions(),
    )
    items = [Item(name=name, limit_s=_LIMIT_S) for target in targets for name in _items(target, only, whole)]
    found: dict[str, list[Count]] = {}

    def receive(item: Item, outcome: Outcome) -> None:
        if outcome.value is None:
            raise WorkError(f"{item.name}: {outcome.error or 'the process that counted it ended with it'}")
        found[item.name] = [Count.from_dict(one) for one in outcome.value]

    with Controller(scheduler, session, say=say) as side:
        say(f"dashboard {side.dashboard}")
        side.run(items, receive)
    yield from (found[item.name] for item in items if found[item.name])


def _items(target: Target, only: Sequence[str], whole: bool) -> Iterator[str]:
    if not only or "attention" in only:
        yield f"{target.name} {_word(CLAIMED)}"
    for name in names() if whole else ():
        if target.operation(name) is not None and (not only or name in only):
            yield f"{target.name} {name}"


def _word(text: str) -> str:
    return text.replace(" ", "-")


def _there(name: str) -> str:
    place, colon, attribute = name.partition(":")
    return f"{Path(place).name}{colon}{attribute}" if place.endswith(".py") else name
