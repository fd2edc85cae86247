"""Exceptions: messages of a target's exceptions, and exceptions that end a row and that no target can raise."""

from __future__ import annotations

from veriformer.verify.results.foreign import message_of, place_of

_BEFORE_PLACE = "\nin "
"""Separator before the place, on a line of its own: exceptions are compared without the place."""


class Ended(BaseException):  # (not an Exception, so that neither target nor Hypothesis can swallow it)
    """End of a row's examples: no further one is run."""


class RowTimeout(Ended):
    """Excess of the row's time limit."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C of the user, which ends the run."""


def ending(error: BaseException) -> BaseException:
    """Return the Ended or Interrupted in an error's context chain, where Hypothesis hides it; else the error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, (Ended, Interrupted)):
        found = found.__context__
    return found or error


def describe_exception(error: BaseException) -> str:
    """Return the exception's class and message, and after it the line of the author's that it was raised in."""
    said, place = message_of(error), place_of(error)
    return f"{said}{_BEFORE_PLACE}{place}" if place else said


def place_in(message: str) -> tuple[str, str] | None:
    """Return the place that a message names, as ``mine.py:12``, and the code in that line; None without one."""
    place, _, code = message.rpartition(_BEFORE_PLACE)[2].partition(": ") if _BEFORE_PLACE in message else ("", "", "")
    return (place, code) if place else None


def code_of(error: BaseException) -> str | None:
    """Return the line of the author's that an exception was raised in; None where there is none."""
    return (place_of(error) or "").partition(": ")[2] or None
