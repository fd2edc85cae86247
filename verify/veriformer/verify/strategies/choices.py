"""Choices among a few things, made once each: building a strategy costs more than drawing from it."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, TypeVar

import hypothesis.strategies as st

T = TypeVar("T")


@lru_cache(maxsize=None, typed=True)
def choice(*options: T) -> st.SearchStrategy[T]:
    """One of these; shrinks to the first."""
    return st.sampled_from(options)


@lru_cache(maxsize=None, typed=True)
def option(name: str, *given: Any) -> st.SearchStrategy[dict[str, Any]]:
    """An option of a call with one of these values; None leaves it out. Shrinks to the first."""
    return st.sampled_from([{} if value is None else {name: value} for value in given])


@cache
def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """None, or what the strategy draws."""
    return st.none() | strategy


@cache
def axes_of_scores() -> st.SearchStrategy[tuple[bool, ...]]:
    """For the last two to four axes of the scores, whether each is full or 1."""
    return st.lists(st.booleans(), min_size=2, max_size=4).map(tuple)
