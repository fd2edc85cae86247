"""Where the work is done: a scheduler that is there already, or one for this run alone on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distributed import Client, Nanny, Scheduler, SpecCluster

from veriformer.workers.address import NoSchedulerError, check

LOOPBACK = "127.0.0.1"
_CONNECT_S = 20
_QUIET = "ERROR"


def connect(place: str, seconds: float = _CONNECT_S) -> Client:
    """Return a client of the scheduler at an address (tcp://host:8786) or named in a scheduler file.

    Raises NoSchedulerError.
    """
    check(place)
    where: dict[str, Any] = {"scheduler_file": place} if Path(place).is_file() else {"address": place}
    try:
        return Client(**where, timeout=seconds, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise NoSchedulerError(f"--scheduler {place}: nothing answers there within {seconds:g} s ({error})") from error


@contextlib.contextmanager
def local(workers: int, gpus: int = 0) -> Iterator[str]:
    """Start a scheduler and workers on the loopback for as long as the context lasts; yield its address.

    With gpus, one worker for each of them: it alone sees it, and has an equal share of the cores for what is computed
    beside it.
    """
    share = max(1, (os.cpu_count() or 1) // max(1, gpus))
    fixed = {"host": LOOPBACK, "dashboard": False, "silence_logs": _QUIET}
    quiet = {"DASK_LOGGING__DISTRIBUTED": _QUIET}
    specs = {
        f"gpu-{number}": {
            "cls": Nanny,
            "options": {
                **fixed,
                "nthreads": share,
                "resources": {"GPU": 1},
                "env": {**quiet, "CUDA_VISIBLE_DEVICES": str(number)},
            },
        }
        for number in range(gpus)
    } or {f"cpu-{n}": {"cls": Nanny, "options": {**fixed, "nthreads": 1, "env": quiet}} for n in range(workers)}
    scheduler = {"cls": Scheduler, "options": {"host": LOOPBACK, "port": 0, "dashboard_address": f"{LOOPBACK}:0"}}
    with SpecCluster(workers=specs, scheduler=scheduler, silence_logs=_QUIET) as cluster:
        yield str(cluster.scheduler_address)
