"""Which polynomial a counted quantity is: degrees first, one letter at a time, then a grid as large as they ask.

A line of calls through one corner, along one letter, tells the degree in that letter: the least for which the first
nodes predict all further ones. The tensor grid of one node more than each degree then has one polynomial through it,
and calls that were kept out of it, along every line and away from all, must lie on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from veriformer.bench.polynomials import Axis, Grid, Point, Polynomial

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Recovered:
    """What was counted at every call, and the polynomials through it; those that are none are left out."""

    grid: Grid
    counted: list[tuple[dict[str, int], Counts]]
    polynomials: dict[str, Polynomial]

    def values(self, quantity: str) -> list[tuple[dict[str, int], int]]:
        """One quantity at every call."""
        return [(point, counts.get(quantity, 0)) for point, counts in self.counted]


def recover(axes: Sequence[Axis], count: Callable[[Point], Counts]) -> Recovered:
    """Count at as many points as the degrees ask, and give the polynomials through the counts."""
    seen: dict[tuple[int, ...], tuple[dict[str, int], Counts]] = {}

    def at(point: dict[str, int]) -> Counts:
        key = tuple(point.values())
        if key not in seen:
            seen[key] = point, count(point)
        return seen[key][1]

    corner = {axis.name: axis.nodes[0] for axis in axes}
    lines = {axis.name: [at(corner | {axis.name: x}) for x in (*axis.nodes, axis.beyond)] for axis in axes}
    kept = [Axis(axis.name, axis.nodes[: _degree(axis, lines[axis.name]) + 1], axis.beyond) for axis in axes]
    grid = Grid(tuple(kept))
    values = [at(point) for point in grid.points()]
    for point in grid.held_out():
        at(point)
    counted = list(seen.values())
    names = dict.fromkeys(name for _, counts in counted for name in counts)
    found = {name: _through(grid, values, counted, name) for name in names}
    return Recovered(grid, counted, {name: p for name, p in found.items() if p is not None})


def _through(
    grid: Grid, values: Sequence[Counts], counted: list[tuple[dict[str, int], Counts]], name: str
) -> Polynomial | None:
    through = grid.interpolate([counts.get(name, 0) for counts in values])
    return through if all(through(point) == counts.get(name, 0) for point, counts in counted) else None


def _degree(axis: Axis, line: Sequence[Counts]) -> int:
    """The largest degree along a line of any quantity that has one."""
    names = {name for counts in line for name in counts}
    degrees = [_degree_of(axis, [counts.get(name, 0) for counts in line]) for name in names]
    return max((degree for degree in degrees if degree is not None), default=0)


def _degree_of(axis: Axis, values: Sequence[int]) -> int | None:
    for degree in range(len(axis.nodes)):
        through = Grid((Axis(axis.name, axis.nodes[: degree + 1], axis.beyond),)).interpolate(values[: degree + 1])
        places = (*axis.nodes, axis.beyond)
        if all(through({axis.name: x}) == value for x, value in zip(places, values, strict=True)):
            return degree
    return None
