"""Sizes of all axes of a call together: log-uniform, at the edges of tiles or between, within an example's budget.

What fails only where several things are large at once (wide heads over many keys, many tensors of many entries) is met
only by drawing them together. Axes are drawn one after the other, in a drawn order: up to four of them first, each in
the upper half of its range, and then the others with what the work left to them allows. So each pair of axes, and each
three, is large together again and again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import hypothesis.strategies as st

Ranges = Mapping[str, tuple[int, int]]
"""Smallest and largest size by axis."""

Work = Callable[[Mapping[str, int]], float]
"""Number of entries that the formula computes, arrays of every step aside; it grows with each size."""

Ties = Sequence[tuple[str, str]]
"""Pairs of axes that are equally long in every third call, as in self-attention."""

_UNIT = 2.0**-32
_TILE = 16
"""Minimum of two thirds of the lengths and widths, where the budget allows it."""

_LONG = 100
"""Minimum largest size of a length or a width; shorter axes multiply the work of a call and little else."""

_WIDE = 4
"""Maximum number of axes that are drawn in the upper half of their logarithmic range."""

_TILES = 6
"""Number of tile sizes 4, 8, …, 128 (2^2 to 2^7)."""


@cache
def extent(least: int, most: int) -> st.SearchStrategy[int]:
    """Return a strategy for log-uniform sizes; half are multiples of a power of two, or one off. Shrinks to the least.

    The bytes drawn are a fraction u in [0, 1) and what is done to the size at u, so that fewer bytes mean less.
    """
    return st.tuples(_words(), st.integers(0, 2 * _TILES - 1), st.integers(-1, 1)).map(
        lambda drawn: _size(least, most, drawn[0] * _UNIT, *drawn[1:])
    )


@cache
def _words() -> st.SearchStrategy[int]:
    """Return a strategy for uniform 32-bit integers, where Hypothesis's integers crowd around 0."""
    return st.binary(min_size=4, max_size=4).map(int.from_bytes)


def _size(least: int, most: int, u: float, how: int, off: int) -> int:
    lowest = max(least, 1)
    size = math.floor(lowest * ((most + 1) / lowest) ** u) if most >= lowest else most
    tile = 4 << (how - _TILES) if how >= _TILES else 0
    near = round(size / tile) * tile + off if tile and size >= tile else size
    return min(max(near if u else least, least), most)


def draw_sizes(
    draw: Callable[[st.SearchStrategy[int]], int], ranges: Ranges, work: Work, budget: float, ties: Ties = ()
) -> dict[str, int]:
    """Draw a size for each axis, with their work within the budget, unless the smallest sizes already exceed it."""
    tied = {other: one for one, other in ties if draw(_place(3)) == 2 and _overlap(ranges[one], ranges[other])}
    limits = {name: ranges[name] for name in ranges if name not in tied}
    for other, one in tied.items():
        limits[one] = _overlap(limits[one], ranges[other]) or limits[one]

    def whole(sizes: Mapping[str, int]) -> dict[str, int]:
        return {name: sizes[tied.get(name, name)] for name in ranges}

    names = list(limits)
    order = [names.pop(draw(_place(len(names)))) for _ in limits]
    if draw(_place(2)):  # lengths and widths first
        order.sort(key=lambda name: limits[name][1] < _LONG)
    found = {name: least for name, (least, _) in limits.items()}
    wide = order[: draw(_place(_WIDE + 1))]
    middle = {name: max(limits[name][0], math.isqrt(max(limits[name][0], 1) * limits[name][1])) for name in wide}
    for name in wide:  # lengths and widths are not drawn so large that no other can be
        if limits[name][1] >= _LONG and work(whole({**found, name: middle[name]})) <= budget:
            found[name] = middle[name]
    for name in order:
        least, most = found[name], limits[name][1]
        most = _most(found, name, least, most, lambda s: work(whole(s)), budget)
        few = draw(_place(3))
        if name in wide:
            least = max(least, min(middle[name], most))
        elif limits[name][1] < _LONG:  # heads, elements of a batch: one or few in two thirds of the calls
            most = min(most, least + 1) if few else most
        elif few and most > _TILE:
            least = max(least, _TILE)
        found[name] = draw(extent(least, most))
    return whole(found)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    """Return the range of sizes that both axes may have; None without any."""
    least, most = max(a[0], b[0]), min(a[1], b[1])
    return (least, most) if least <= most else None


@cache
def _place(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


def _most(found: Mapping[str, int], name: str, least: int, most: int, work: Work, budget: float) -> int:
    """Return the largest size of an axis within the budget, the other sizes fixed: by bisection, in 4 to 10 steps."""
    if work({**found, name: most}) <= budget:
        return most
    low, high = least, most
    while high > low + 1 and high > 1.02 * low:
        middle = (low + high) // 2
        low, high = (middle, high) if work({**found, name: middle}) <= budget else (low, middle)
    return low
