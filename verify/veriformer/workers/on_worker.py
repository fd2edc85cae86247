"""Plugin of a Dask worker: it takes up sessions and hands items to processes beside it.

An item that ends, hangs or fills its process costs that process and nothing else; the worker answers for it. The worker
itself imports no numerical library.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import execnet
from distributed import Worker, WorkerPlugin, get_worker
from distributed.utils import sync

from veriformer.workers.session import Session
from veriformer.workers.versions import differences, versions

_ENDING_S = 5.0
_STARTING_S = 120.0
_SERVE = """\
import sys
sys.path[:0] = channel.receive()
from veriformer.workers.child import serve
serve(channel)
"""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Process:
    """A process that does items, and the channel to it."""

    def __init__(self, folder: Path, session: Session) -> None:
        limits = "".join(f"//env:{name}={session.threads}" for name in _THREADS)
        self._group = execnet.Group()
        self._gateway = self._group.makegateway(f"popen//execmodel=main_thread_only//chdir={folder}{limits}")
        self._channel = self._gateway.remote_exec(_SERVE)
        self._channel.send([str(folder), *(str(Path(place).resolve()) for place in sys.path)])
        self._channel.send(session.described())
        self._pid: int = self._channel.receive(_STARTING_S)

    def ask(self, item: str, extra: Any, limit_s: float) -> Any:
        """Run an item in the process. Raises EOFError where the process has ended, or exceeded limit_s seconds."""
        try:
            self._channel.send(json.dumps({"item": item, "extra": extra}))
            return json.loads(self._channel.receive(limit_s))
        except (EOFError, OSError, self._channel.TimeoutError, self._channel.RemoteError) as error:
            raise EOFError(str(error)) from error

    def end(self) -> None:
        """End the process, in whatever state."""
        with contextlib.suppress(Exception):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(Exception):
            self._group.terminate(_ENDING_S)


class TakesUp(WorkerPlugin):  # type: ignore[misc]  # mypy does not look into distributed
    """Keeps a session on every worker, those that come later too."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.name = session.name

    def setup(self, worker: Worker) -> None:
        """Lay out the session's files, and see whether this worker has the versions that are wanted."""
        self.idle: list[Process] = []
        self.busy: list[Process] = []
        self.lock = threading.Lock()
        self.folder = Path(tempfile.mkdtemp(prefix="veriformer-", dir=worker.local_directory))
        for name, content in self.session.files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            if file.suffix == ".whl":
                _install(file, self.folder)
        wanted = self.session.versions
        self.different = differences(wanted, versions(tuple(wanted), self.folder)) if wanted else []

    def teardown(self, worker: Worker) -> None:
        """End the processes, and leave nothing behind."""
        with self.lock:
            processes = [*self.idle, *self.busy]
            self.idle, self.busy = [], []
        for process in processes:
            process.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def do(self, item: str, extra: Any, limit_s: float) -> dict[str, Any]:
        """Run an item in an idle process of the worker."""
        process = self._taken()
        began = time.monotonic()
        try:
            answer: dict[str, Any] = process.ask(item, extra, limit_s)
        except EOFError:
            self._back(process, alive=False)
            process.end()
            return {"lost": time.monotonic() - began}
        self._back(process, alive=True)
        return {**answer, "seconds": time.monotonic() - began}

    def _taken(self) -> Process:
        with self.lock:
            process = self.idle.pop() if self.idle else Process(self.folder, self.session)
            self.busy.append(process)
        return process

    def _back(self, process: Process, *, alive: bool) -> None:
        with self.lock:
            if process in self.busy:
                self.busy.remove(process)
                if alive:
                    self.idle.append(process)


def perform(session: str, items: Sequence[tuple[str, Any, float]]) -> list[dict[str, Any]]:
    """Run items of a session, each a name, its extra arguments and its limit in seconds; return answers in order."""
    worker = get_worker()
    plugin = worker.plugins[session]
    if plugin.different:
        return [{"worker": worker.address, "different": plugin.different} for _ in items]
    if len(items) == 1:  # of several, none is ever blamed for the end of a worker: they are sent again one by one
        _announce(worker, session, items[0][0])
    return [{**plugin.do(*item), "worker": worker.address} for item in items]


def _announce(worker: Worker, session: str, item: str) -> None:
    """Announce an item, and wait until the scheduler knows: if it ends this worker, it is known to have begun.

    ``Worker.log_event`` only queues its message, which is lost with the worker, so that the item before is blamed.
    """
    sync(worker.loop, worker.scheduler.log_event, topic=session, msg={"item": item, "worker": worker.address})


def different(session: str, dask_worker: Worker) -> list[str]:
    """Return the differences of this worker's versions from those that a session wants, in words that name both."""
    found: list[str] = dask_worker.plugins[session].different
    return found


def _install(wheel: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, env={**os.environ, "PIP_NO_INPUT": "1"})
