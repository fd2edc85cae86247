"""Sizes and shapes: small, seldom square, often 1, so that no axis can be taken for another."""

from __future__ import annotations

from functools import cache

import hypothesis.strategies as st

_LARGEST = 7


@cache
def sizes(smallest: int = 1, largest: int = _LARGEST) -> st.SearchStrategy[int]:
    """Return a strategy for one size; shrinks to the smallest."""
    return st.integers(smallest, largest)


@cache
def widths(largest: int = _LARGEST) -> st.SearchStrategy[int]:
    """Return a strategy for the main axis of an operation: seldom 1, for which most laws are vacuous; shrinks to 3."""
    return st.sampled_from([3, 2, *range(4, largest + 1), 1])


@cache
def leading_shapes(largest_rank: int = 3, largest: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Return a strategy for none to three leading axes; shrinks to none."""
    return shapes(0, largest_rank, largest)


@cache
def axis_of(rank: int) -> st.SearchStrategy[int]:
    """Return a strategy for an axis of an array of this rank, counted from either end; shrinks to the last."""
    return st.sampled_from([*range(-1, -rank - 1, -1), *range(rank)])


@cache
def shapes(least_rank: int, largest_rank: int, largest: int = _LARGEST) -> st.SearchStrategy[tuple[int, ...]]:
    """Return a strategy for whole shapes of ranks in this range; shrinks to the least."""
    return st.lists(sizes(1, largest), min_size=least_rank, max_size=largest_rank).map(tuple)
