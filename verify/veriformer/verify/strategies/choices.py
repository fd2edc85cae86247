"""Cached strategies for choices: building a strategy costs more than drawing from it."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, TypeVar

import hypothesis.strategies as st

T = TypeVar("T")


@lru_cache(maxsize=None, typed=True)
def choice(*options: T) -> st.SearchStrategy[T]:
    """Return a strategy for one of these options; shrinks to the first."""
    return st.sampled_from(options)


@lru_cache(maxsize=None, typed=True)
def option(name: str, *given: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for an option with one of these values, None to leave it out; shrinks to the first."""
    return st.sampled_from([{} if value is None else {name: value} for value in given])


@cache
def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """Return a strategy for None or a value of ``strategy``."""
    return st.none() | strategy


@cache
def axes_of_scores() -> st.SearchStrategy[tuple[bool, ...]]:
    """Return a strategy for the full axes among the last two to four of [B, H, n_q, n_k], the others having size 1.

    The axis of keys is full most often. In every third draw the heads differ from one another in all four axes: such a
    mask is the easiest to misread.
    """
    t, f = True, False
    pairs = ((t, t), (f, t), (t, f))
    triples = ((t, t, t), (f, t, t), (t, f, t), (t, t, f))
    all_four = ((t, t, t, t), (t, f, t, t), (t, f, f, t), (f, t, t, t), (f, t, f, t), (f, f, t, t), (t, t, f, t))
    of_heads = ((t, t, t, t), (f, t, t, t), (t, t, f, t), (t, t, t, t))
    return st.sampled_from((*pairs, *triples, *all_four, (t, f, t, f), (f, f, f, t), *of_heads))
