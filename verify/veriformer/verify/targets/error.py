"""The exception for targets that cannot be loaded."""


class TargetError(Exception):
    """The target cannot be loaded; the message says what was expected, what was found and what to do."""

    plain = True
    """The message is all that a person needs of it; a traceback would say no more."""
