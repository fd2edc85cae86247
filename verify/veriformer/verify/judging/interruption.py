"""What ends a row from outside, and no target can say."""

from __future__ import annotations


class Ended(BaseException):  # (not an Exception, so that neither target nor Hypothesis can swallow it)
    """No further example is run."""


class RowTimeout(Ended):
    """The row took longer than it may."""


class Interrupted(KeyboardInterrupt):
    """The person at the keyboard wants the run to end."""


def ending(error: BaseException) -> BaseException:
    """What ended the examples, where Hypothesis met an error of its own while it passed that on; else the same."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, (Ended, Interrupted)):
        found = found.__context__
    return found or error
