"""Splitting of a run into parts: each gets whole groups, so that prerequisites come first, and a load as even as
possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def split(costs: Mapping[T, float], parts: int) -> list[list[T]]:
    """Groups over so many parts, the same on every machine: the dearest first, each to the part with the least so far.

    Within a part they stand in the order in which they were given.
    """
    place = {group: number for number, group in enumerate(costs)}
    held: list[list[T]] = [[] for _ in range(parts)]
    load = [0.0] * parts
    for group in sorted(costs, key=lambda group: (-costs[group], place[group])):
        least = min(range(parts), key=lambda part: (load[part], len(held[part]), part))
        held[least].append(group)
        load[least] += costs[group]
    return [sorted(groups, key=place.__getitem__) for groups in held]


def costs(groups: Mapping[T, Sequence[tuple[str, float]]], seconds: Mapping[str, float]) -> dict[T, float]:
    """Return the cost of each group: the seconds of its members in an earlier run, and for an unknown member the mean
    of the known ones, times its effort; without such a run, the effort alone."""
    known = [seconds[name] for members in groups.values() for name, _ in members if name in seconds]
    mean = sum(known) / len(known) if known else 1.0
    return {
        group: round(sum(seconds.get(name, mean * effort) for name, effort in members), 6)
        for group, members in groups.items()
    }
