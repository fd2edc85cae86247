"""Where a run may be executed, by name: what a command line needs of it before anything is imported that runs."""

from veriformer.workers.address import NoSchedulerError, need

LOCAL = "local"


class ExecutionError(Exception):
    """The run cannot be executed there; the message says what is missing and what to do."""


def check_scheduler(place: str | None) -> None:
    """Raise ExecutionError for what is no address of a scheduler, and where Dask is not installed."""
    try:
        if place is not None:
            need(place)
    except NoSchedulerError as error:
        raise ExecutionError(str(error)) from error
