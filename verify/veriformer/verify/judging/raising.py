"""Messages of exceptions that a target raised, with the place in its own code."""

from __future__ import annotations

from veriformer.verify.results.foreign import message_of, place_of

_IN = "\nin "
"""Separator before the place, on a line of its own: exceptions are compared without the place."""


def told(error: BaseException) -> str:
    """Return the exception's class and message, and after it the line of the author's that it was raised in."""
    said, place = message_of(error), place_of(error)
    return f"{said}{_IN}{place}" if place else said


def place_in(message: str) -> tuple[str, str] | None:
    """Return the place that a message tells of, as ``mine.py:12``, and the code in that line; None without one."""
    place, _, code = message.rpartition(_IN)[2].partition(": ") if _IN in message else ("", "", "")
    return (place, code) if place else None


def code_of(error: BaseException) -> str | None:
    """Return the line of the author's that an exception was raised in; None where there is none."""
    return (place_of(error) or "").partition(": ")[2] or None
