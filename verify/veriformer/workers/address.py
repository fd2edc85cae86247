"""Names of schedulers, checked before anything is imported that reaches one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

LOCAL = "local"


class NoSchedulerError(Exception):
    """There is no usable scheduler at that address; the message lists the attempts."""


def check(place: str) -> None:
    """Raise NoSchedulerError for a word that is no address, and for a scheduler file that is not there."""
    if place != LOCAL and "://" not in place and not Path(place).is_file():
        raise NoSchedulerError(
            f"--scheduler {place!r}: expected an address (tcp://host:8786), a scheduler file, or {LOCAL}; "
            "there is no such file"
        )


def need(place: str) -> None:
    """Raise NoSchedulerError for an invalid address, and where Dask is not installed."""
    check(place)
    if find_spec("distributed") is None:
        raise NoSchedulerError(
            "--scheduler: expected the package distributed, which is not installed: "
            "pip install 'veriformer[distributed]' brings it"
        )
