"""Verdict on a prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """Verdict on a prediction."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_COUNTABLE = "not countable"
    INVALID = "invalid"
    """The measurement is impossible: too quick for the work, or the process that ran it ended."""
    COUNTED = "counted"
    """Nothing is predicted of it."""


SIGNS: Mapping[Verdict | None, tuple[str, str]] = {
    Verdict.CONFIRMED: ("✓", "green"),
    Verdict.REFUTED: ("✗", "bold red"),
    Verdict.INCONCLUSIVE: ("?", "yellow"),
    Verdict.NOT_COUNTABLE: ("–", "dim"),
    Verdict.INVALID: ("–", "dim"),
    Verdict.COUNTED: ("·", "dim"),
    None: ("·", "dim"),
}
"""Sign and style of each verdict on a terminal; None where no goal was set."""


def tally(found: Iterable[Any], order: Iterable[StrEnum]) -> list[str]:
    """Return the number of records by verdict, as text, in this order."""
    counts = Counter(one.verdict for one in found)
    return [f"{counts[verdict]} {verdict.value}" for verdict in order if counts[verdict]]
