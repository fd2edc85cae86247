"""Where a run may be executed, by name: what a command line needs of it before anything is imported that runs."""

LOCAL = "local"


class ExecutionError(Exception):
    """The run cannot be executed there; the message says what is missing and what to do."""
