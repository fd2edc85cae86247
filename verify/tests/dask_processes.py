"""Not a test: a real Dask scheduler and worker processes on the loopback, which end by themselves."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOTS = [str(Path(__file__).parents[2] / root) for root in ("spec", "impl", "verify", "bench", "reports")]
LIFE_S = 1200
LOOPBACK = "127.0.0.1"


class Processes:
    """A scheduler, and worker processes under nannies; nothing is left of them at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind((LOOPBACK, 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://{LOOPBACK}:{self.port}"
        self.scheduler_file = folder / "scheduler.json"

    def scheduler(self) -> subprocess.Popen[bytes]:
        """Start the scheduler, always at the same address."""
        words = ["--host", LOOPBACK, "--port", self.port, "--no-dashboard", "--scheduler-file", self.scheduler_file]
        return self._start("dask_scheduler", words)

    def workers(self, count: int, *options: object, **environment: str) -> subprocess.Popen[bytes]:
        """Start workers of one thread each."""
        words = ["--nworkers", count, "--nthreads", 1, "--host", LOOPBACK, "--no-dashboard", "--death-timeout", 180]
        words += ["--local-directory", self.folder]
        return self._start("dask_worker", [self.address, *words, *options], **environment)

    def end(self) -> None:
        """End all of them, with all that they have started."""
        for process in reversed(self.started):
            self.kill(process)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End one of them and all that it has started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _start(self, program: str, words: list[object], **environment: str) -> subprocess.Popen[bytes]:
        limited = ["timeout", "--signal=KILL", str(LIFE_S), sys.executable, "-m", f"distributed.cli.{program}"]
        path = os.pathsep.join([*ROOTS, os.environ.get("PYTHONPATH", "")])
        with (self.folder / f"{program}.log").open("ab") as log:
            process = subprocess.Popen(
                [*limited, *map(str, words)],
                env={
                    **os.environ,
                    "PYTHONPATH": path,
                    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
                    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s",
                    **environment,
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process


@contextlib.contextmanager
def running(folder: Path, workers: int = 4) -> Iterator[Processes]:
    """A scheduler and so many workers, for as long as the context lasts."""
    there = Processes(folder)
    try:
        there.scheduler()
        if workers:
            there.workers(workers)
        yield there
    finally:
        there.end()


def wait_for(condition: Callable[[], object], seconds: float = 180) -> None:
    """Until it is so."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came so far"
        time.sleep(0.02)
