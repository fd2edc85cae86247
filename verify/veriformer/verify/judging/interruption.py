"""What ends a row, or its examples, and no target can say."""

from __future__ import annotations


class Ended(BaseException):  # (not an Exception, so that neither target nor Hypothesis can swallow it)
    """No further example is run."""


class RowTimeout(Ended):
    """The row took longer than it may."""


class Interrupted(KeyboardInterrupt):
    """The person at the keyboard wants the run to end."""


def ending(error: BaseException) -> BaseException:
    """What was being passed on when an error was raised, as by Hypothesis that is ended; else the error itself."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, (Ended, Interrupted)):
        found = found.__context__
    return found or error
