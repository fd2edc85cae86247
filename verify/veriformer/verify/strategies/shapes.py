"""Sizes: small, seldom square, often 1, so that no axis can be taken for another."""

from __future__ import annotations

from functools import cache

import hypothesis.strategies as st

_LARGEST = 7


@cache
def sizes(smallest: int = 1, largest: int = _LARGEST) -> st.SearchStrategy[int]:
    """One size; it shrinks to the smallest."""
    return st.integers(smallest, largest)


@cache
def widths(largest: int = _LARGEST) -> st.SearchStrategy[int]:
    """The size of an axis that an operation is about: seldom 1, which leaves most laws nothing to say; shrinks to 3."""
    return st.sampled_from([3, 2, *range(4, largest + 1), 1])


@cache
def leading_shapes(largest_rank: int = 3, largest: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """The axes before the ones that an operation is about: none to three of them; shrinks to none."""
    return shapes(0, largest_rank, largest)


@cache
def axis_of(rank: int) -> st.SearchStrategy[int]:
    """An axis of an array of this rank, counted from either end; shrinks to the last."""
    return st.sampled_from([*range(-1, -rank - 1, -1), *range(rank)])


@cache
def shapes(least_rank: int, largest_rank: int, largest: int = _LARGEST) -> st.SearchStrategy[tuple[int, ...]]:
    """A whole shape of a rank between these; shrinks to the least."""
    return st.lists(sizes(1, largest), min_size=least_rank, max_size=largest_rank).map(tuple)
