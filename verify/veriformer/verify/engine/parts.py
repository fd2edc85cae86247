"""Parts of one run: splitting it, and consistency of the parts before they are merged.

Each part gets whole groups, so that prerequisites come first, and a load as even as possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from veriformer.verify.results.shard import Shard
from veriformer.workers.versions import differences, versions

T = TypeVar("T")


class NotOneRunError(ValueError):
    """The files do not belong to one run, or share a row; the message names files and differences."""


def check(shards: Mapping[str, Shard | None]) -> Shard:
    """Raise NotOneRunError unless all are different parts of one run; returns the first.

    shards: by the name of the file that they come from.
    """
    whole = [name for name, shard in shards.items() if shard is None]
    if whole:
        raise NotOneRunError(f"{whole[0]}: expected a part of a run (--shard), got a whole one")
    parts = {name: shard for name, shard in shards.items() if shard is not None}
    if not parts:
        raise NotOneRunError("expected the files of a run's parts, got none")
    (first, one), *others = parts.items()
    for name, other in others:
        if other.of != one.of:
            raise NotOneRunError(f"{name} is part {other} of a run, {first} is part {one}")
        same(f"{first} and {name} are of different runs", one.plan, other.plan)
        different = differences(one.versions, other.versions)
        if different:
            raise NotOneRunError(f"{name} was made with other versions than {first}: {'; '.join(different)}")
    _once(parts)
    return one


def same(what: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise NotOneRunError that names the entries in which two records differ, with both values."""
    keys = [key for key in dict.fromkeys((*one, *other)) if one.get(key) != other.get(key)]
    if keys:
        told = "; ".join(f"{key} {_short(one.get(key))} and {_short(other.get(key))}" for key in keys)
        raise NotOneRunError(f"{what}: {told}")


def of_this_suite(part: Shard) -> None:
    """Raise NotOneRunError unless this suite's version ran the part: another would plan other rows."""
    there, here = part.versions.get("suite"), versions()["suite"]
    if there != here:
        raise NotOneRunError(f"the parts were run by the suite of source {there}, this one has source {here}")


def missing(parts: Sequence[Shard], every: Sequence[str], finished: Sequence[str]) -> list[str]:
    """Return a line for each missing part of a run, and for missing rows of the parts that are there."""
    known, done = {row for part in parts for row in part.rows}, set(finished)
    of = parts[0].of
    absent = sorted(set(range(1, of + 1)) - {part.number for part in parts})
    lines = [f"part {number}/{of} is missing" for number in absent]
    nowhere = [row for row in every if row not in known]
    if nowhere:
        lines.append(f"{len(nowhere)} of {len(every)} rows are in no file: {_some(nowhere)}")
    for part in sorted(parts, key=lambda part: part.number):
        left = [row for row in part.rows if row not in done]
        if left:
            lines.append(f"part {part} stopped before {len(left)} of its {len(part.rows)} rows: {_some(left)}")
    return lines


def _once(parts: Mapping[str, Shard]) -> None:
    numbers = Counter(part.number for part in parts.values())
    for number, times in numbers.items():
        if times > 1:
            names = " and ".join(name for name, part in parts.items() if part.number == number)
            raise NotOneRunError(f"part {number} is there {times} times: {names}")
    rows = Counter(row for part in parts.values() for row in part.rows)
    twice = [row for row, times in rows.items() if times > 1]
    if twice:
        names = " and ".join(name for name, part in parts.items() if twice[0] in part.rows)
        raise NotOneRunError(f"{len(twice)} rows are there twice, such as {twice[0]} in {names}")


def _some(rows: Sequence[str]) -> str:
    return ", ".join(rows[:5]) + (", …" if len(rows) > 5 else "")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def split(costs: Mapping[T, float], parts: int) -> list[list[T]]:
    """Split groups into parts by cost, equally on every machine: the dearest first, each to the part with the least so
    far.

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
