"""Assignment of failing rows to causes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.evidence import Example
from veriformer.verify.findings.signature import shortened
from veriformer.verify.results import Result

Likeness = Callable[[Example, Result], bool]

_LIKENESSES: tuple[Likeness, ...] = (
    lambda one, row: _same(one, row) and one.row.dtype == row.dtype and _alike(one, row),
    lambda one, row: _same(one, row) and one.row.dtype == row.dtype,
    lambda one, row: _same(one, row) and _alike(one, row),
    lambda one, row: _same(one, row),
    lambda one, row: shortened(one.message) == shortened(str(row.message)),
)
"""Criteria of the likeliest cause for a row, the surest first: an example of that very row that failed in the words of
its result, down to any example that failed so."""


def shared_out(causes: Sequence[Cause], results: Iterable[Result]) -> list[list[Result]]:
    """For each cause the failing rows that go under it; each row goes under one cause at most."""
    shared: list[list[Result]] = [[] for _ in causes]
    for result in results:
        place = _place(causes, result)
        if place is not None:
            shared[place].append(result)
    return shared


def _place(causes: Sequence[Cause], result: Result) -> int | None:
    for alike in _LIKENESSES:
        counts = [sum(alike(example, result) for example in cause.explained) for cause in causes]
        if any(counts):
            return counts.index(max(counts))
    return None


def _same(example: Example, result: Result) -> bool:
    return example.row.check.requirement.slug == result.requirement


def _alike(example: Example, result: Result) -> bool:
    return first_words(example.message) == first_words(result.message)


def first_words(message: str | None) -> str:
    """Return the first words of a message without its numbers, which name what was judged, or the exception."""
    return shortened(str(message).partition("[")[0].partition(":")[0])
