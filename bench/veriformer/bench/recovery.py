"""Polynomial of a counted quantity: degrees first, one letter at a time, then a grid as large as they ask.

A line of calls through one corner, along one letter, tells the degree in that letter: the least for which the first
nodes predict the one far beyond them. Where they do not, the next node is counted. The tensor grid of one node more
than each degree then has one polynomial through it, and calls that were kept out of it, along every line and away from
all, must lie on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from veriformer.bench.operations.family import BETWEEN, FORWARD, RECOMPUTED
from veriformer.bench.polynomials import Axis, Grid, Point, Polynomial
from veriformer.spec.costs import symbol

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Recovered:
    """Counts at every call, and the polynomials through them; quantities without a polynomial are left out."""

    grid: Grid
    counted: list[tuple[dict[str, int], Counts]]
    polynomials: dict[str, Polynomial]

    def values(self, quantity: str) -> list[tuple[dict[str, int], int]]:
        """Return a quantity at every call."""
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

    def along(name: str) -> Callable[[int], Counts]:
        return lambda x: at(corner | {name: x})

    grid = Grid(tuple(_as_asked(axis, along(axis.name)) for axis in axes))
    values = [at(point) for point in grid.points()]
    for point in grid.held_out():
        at(point)
    farthest = tuple(axis.beyond for axis in axes)
    seen[farthest] = seen.pop(farthest)  # last of all, where differences are told
    counted = list(seen.values())
    names = dict.fromkeys(name for _, counts in counted for name in counts)
    found = {name: _through(grid, values, counted, name) for name in names}
    return Recovered(grid, counted, {name: p for name, p in found.items() if p is not None})


def renamed(found: Recovered, letters: Mapping[str, str]) -> Recovered:
    """Rename the letters."""

    def by(name: str) -> str:
        return letters.get(name, name)

    return Recovered(
        Grid(tuple(replace(axis, name=by(axis.name)) for axis in found.grid.axes)),
        [({by(name): x for name, x in point.items()}, counts) for point, counts in found.counted],
        {quantity: replace(p, names=tuple(map(by, p.names))) for quantity, p in found.polynomials.items()},
    )


def _through(
    grid: Grid, values: Sequence[Counts], counted: list[tuple[dict[str, int], Counts]], name: str
) -> Polynomial | None:
    through = grid.interpolate([counts.get(name, 0) for counts in values])
    return through if all(through(point) == counts.get(name, 0) for point, counts in counted) else None


def _as_asked(axis: Axis, at: Callable[[int], Counts]) -> Axis:
    """Return the axis with as many nodes as the largest degree asks of any quantity that has one along a line.

    A peak is a maximum of polynomials, and convex where these are lines: if three nodes, one of them far off, lie on a
    line, so does all between them.
    """
    counted = [at(axis.nodes[0])]
    beyond = at(axis.beyond)
    degrees: set[int | None] = {None}
    for x in axis.nodes[1:]:
        counted.append(at(x))
        line = Axis(axis.name, axis.nodes[: len(counted)], axis.beyond)
        degrees = _degrees(line, [*counted, beyond])
        if None not in degrees:
            break
    most = max((degree for degree in degrees if degree is not None), default=0)
    return Axis(axis.name, axis.nodes[: most + 1], axis.beyond)


def _degrees(line: Axis, values: Sequence[Counts]) -> set[int | None]:
    """Return the degrees of all quantities, None for those that no polynomial through the line's nodes predicts."""
    names = {name for counts in values for name in counts}
    return {_degree_of(line, [counts.get(name, 0) for counts in values]) for name in names}


def _degree_of(axis: Axis, values: Sequence[int]) -> int | None:
    for degree in range(len(axis.nodes)):
        through = Grid((Axis(axis.name, axis.nodes[: degree + 1], axis.beyond),)).interpolate(values[: degree + 1])
        places = (*axis.nodes, axis.beyond)
        if all(through({axis.name: x}) == value for x, value in zip(places, values, strict=True)):
            return degree
    return None


def recomputation_allowed(found: Recovered) -> list[int]:
    """Return the extra FLOPs allowed for each call: those recomputed, none where that is too much."""
    return [0 if recomputes_too_much(found) else counts.get(RECOMPUTED, 0) for _, counts in found.counted]


def recomputes_too_much(found: Recovered) -> bool:
    """Return whether more is recomputed than the forward pass computed."""
    return any(counts.get(RECOMPUTED, 0) > counts.get(FORWARD, 0) for _, counts in found.counted)


def recomputation_said(found: Recovered) -> str | None:
    """Describe the cost of checkpointing and what it keeps; None where nothing is recomputed."""
    counts = found.counted[-1][1]
    if not counts.get(RECOMPUTED):
        return None
    share = counts[RECOMPUTED] / counts[FORWARD] if counts[FORWARD] else float("inf")
    if share > 1:
        return f"the backward pass computes the forward pass again more than once: {share:.3g} times"
    times = "one forward pass more" if share == 1 else f"{share:.3g} of a forward pass more"
    return f"the backward pass recomputes the forward pass (checkpointing): {times}{_kept_between(found)}"


def _kept_between(found: Recovered) -> str:
    kept = found.polynomials.get(BETWEEN)
    return f"; between the passes only {kept.expression(symbol)} bytes are kept" if kept is not None else ""
