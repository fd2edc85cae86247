"""The exception for targets that cannot be loaded."""


class TargetError(Exception):
    """The target cannot be loaded; the message has expectation, finding and remedy."""

    plain = True
    """The message is all that a person needs of it; a traceback would say no more."""
