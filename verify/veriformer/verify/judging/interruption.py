"""Exceptions that end a row, or its examples, and that no target can raise."""

from __future__ import annotations


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
