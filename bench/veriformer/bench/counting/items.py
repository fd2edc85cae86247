"""Work items of a count: pieces that any process can count independently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from veriformer.bench import targets
from veriformer.bench.assess import shared, together
from veriformer.bench.assessment import uncountable_record
from veriformer.bench.counts import count
from veriformer.bench.document import Count
from veriformer.bench.operations.catalogue import names
from veriformer.bench.targets import Target
from veriformer.bench.words import MODEL

CLAIMED = "as claimed"
"""In place of an operation: attention held against the way in which the target says that it computes it."""


@dataclass(frozen=True)
class Item:
    """An operation, and the places in the list of targets of those that share it."""

    operation: str
    places: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.operation} {','.join(map(str, self.places))}"

    @classmethod
    def read(cls, text: str) -> Item:
        """Return the item of a text."""
        operation, _, places = text.rpartition(" ")
        return cls(operation, tuple(map(int, places.split(","))))


def items(given: Sequence[Target], only: Sequence[str], *, whole: bool) -> list[Item]:
    """Return all items, what takes longest first. whole: all operations, and not attention as claimed alone."""
    claimed = [Item(CLAIMED, (place,)) for place, target in enumerate(given) if target.attention and target.costs]
    places = {id(target): place for place, target in enumerate(given)}
    rest = [
        Item(name, tuple(places[id(target)] for target in some))
        for name in sorted(names() if whole else (), key=lambda name: name != MODEL)
        if not only or name in only
        for some in shared(given, name)
    ]
    return [*(claimed if not only or "attention" in only else ()), *rest]


@dataclass(frozen=True)
class Given:
    """Targets by the words that any process finds them by. variant: how they are said to compute attention."""

    words: tuple[str, ...]
    variant: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Name of a target in its counts, where it is not its word."""

    @cached_property
    def targets(self) -> list[Target]:
        """Return the targets themselves. Raises UnknownTargetError."""
        return [self._named(targets.find(word, self.variant)) for word in self.words]

    def count(self, item: Item) -> list[list[Count]]:
        """Return all counts of an item, for each of its targets."""
        chosen = [self.targets[place] for place in item.places]
        if item.operation == CLAIMED:
            return [list(count(target)) for target in chosen]
        return together(chosen, item.operation)

    def lost(self, item: Item, why: str) -> list[list[Count]]:
        """Return the records of an item that took its process with it."""
        chosen = [self.targets[place] for place in item.places]
        return [[uncountable_record(target, item.operation, why)] for target in chosen]

    def _named(self, target: Target) -> Target:
        return replace(target, name=self.names.get(target.name, target.name))


class InOrder:
    """Takes counts as they come, and gives them with their operation, by target, in the contract's order."""

    def __init__(self, wanted: Sequence[Item]) -> None:
        order = (CLAIMED, *names())
        self._left = sorted((place, order.index(item.operation)) for item in wanted for place in item.places)
        self._found: dict[tuple[int, int], list[Count]] = {}
        self._order = order

    def take(self, item: Item, counts: Sequence[list[Count]]) -> Iterator[tuple[str, list[Count]]]:
        """Take the counts of an item, and yield all that are next in order."""
        for place, some in zip(item.places, counts, strict=True):
            self._found[place, self._order.index(item.operation)] = some
        while self._left and self._left[0] in self._found:
            yield from self._given(self._left.pop(0))

    def rest(self) -> Iterator[tuple[str, list[Count]]]:
        """Yield the counts that still wait for earlier ones, after the last item."""
        for key in sorted(self._found):
            yield from self._given(key)

    def _given(self, key: tuple[int, int]) -> Iterator[tuple[str, list[Count]]]:
        if counts := self._found.pop(key):
            yield self._order[key[1]], counts
