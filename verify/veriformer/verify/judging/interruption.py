"""What ends a row from outside, and no target can say."""

from __future__ import annotations


class RowTimeout(BaseException):  # (not an Exception, so that neither target nor Hypothesis can swallow it)
    """The row took longer than it may."""


class Interrupted(KeyboardInterrupt):
    """The person at the keyboard wants the run to end."""
