"""Verdict on a prediction."""

from __future__ import annotations

from enum import StrEnum


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
