"""Execution of items by processes of this machine, forked from one that has imported their modules.

A process that ends, hangs or fills its memory costs the item that it was doing: another one takes its place.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import types
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from typing import Any

from veriformer.workers import child
from veriformer.workers.session import Extra, Item, Outcome, Session, Tell
from veriformer.workers.stopwatch import kept_waiting

_CONTEXT = multiprocessing.get_context("forkserver")
_LOOK_S = 1.0
"""Seconds between two looks at the time that items have taken."""

_ENDING_S = 2.0
"""Seconds in which an idle process ends by itself before it is killed."""

_LONGEST, _SHORT = 60, "/tmp"  # a folder of its own is made there
"""Longest path of the temporary folder, in characters, under which the address of a Unix socket stays within its 107
bytes; and the folder in place of a longer one."""

_SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "PYTHONSAFEPATH": "1",
}
"""Environment variables that the libraries below PyTorch and NumPy, and Python, read as they are loaded.

There are as many processes as cores, and NumPy's products of matrices would wait for their other threads without giving
up the cores. A file in the folder where the suite is started, such as typing.py, may have the name of a module of
Python's.
"""


def of_worker() -> dict[str, str]:
    """Return the environment of a process that is started from this one."""
    return {**os.environ, **_SETTINGS}


def prepare(modules: Sequence[str]) -> None:
    """Start the process that others are forked from, unless there is one; it imports these modules meanwhile."""
    _CONTEXT.set_forkserver_preload([*modules])
    settings = {**_SETTINGS, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    before, folder = {name: os.environ.get(name) for name in settings}, tempfile.tempdir
    os.environ.update(settings)
    if len(tempfile.gettempdir()) > _LONGEST:
        tempfile.tempdir = _SHORT
    try:
        forkserver.ensure_running()
    finally:
        tempfile.tempdir = folder
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@dataclass
class _Process:
    """A process, the item that it does, and since when: by the clock, and what its thread had waited by then."""

    process: ForkServerProcess
    connection: Connection
    item: Item | None = None
    began: float = 0.0
    waited: float = 0.0

    def running(self) -> float:
        """Return the seconds that its item has taken, but for those in which there was no processor."""
        return time.monotonic() - self.began - (kept_waiting(self.process.pid) - self.waited)

    def end(self) -> None:
        """End the process, in whatever state."""
        self.connection.close()
        self.process.kill()
        self.process.join()


@dataclass
class Processes:
    """Has the items of a session done by so many processes of this machine.

    ``with`` ends the processes, whatever they do. A person's Ctrl-C reaches this process alone.
    """

    session: Session
    jobs: int
    dashboard: str = ""
    _idle: list[_Process] = field(default_factory=list, init=False)
    _busy: list[_Process] = field(default_factory=list, init=False)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._idle:
            one.connection.close()
        for one in self._idle:
            one.process.join(_ENDING_S)
        for one in (*self._busy, *self._idle):
            one.end()

    @property
    def resources(self) -> list[Mapping[str, float]]:
        """Offers of this machine: threads, and the device that the processes share."""
        return [{"threads": self.jobs, "GPU": 1.0}]

    def run(self, items: Iterable[Item], tell: Tell, extra: Extra = lambda item: None) -> None:
        """Do all items, and tell what became of each as it comes. extra: what is said of an item alone, asked when all
        that it needs has been told."""
        waiting = deque(items)
        unfinished = {item.name for item in waiting}
        while unfinished:
            while len(self._busy) < self.jobs and (item := _take_ready(waiting, unfinished)) is not None:
                self._begin(item, extra(item))
            for item, outcome in [*self._ended()]:
                unfinished.discard(item.name)
                tell(item, outcome)

    def _begin(self, item: Item, said: Any) -> None:
        while True:
            one = self._idle.pop() if self._idle else self._started()
            one.item, one.began, one.waited = item, time.monotonic(), kept_waiting(one.process.pid)
            try:
                one.connection.send((item.name, said))
            except OSError:  # it has ended since its last item
                one.end()
                continue
            self._busy.append(one)
            return

    def _started(self) -> _Process:
        prepare([self.session.work.partition(":")[0]])
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_serve, args=(self.session, theirs, of_worker(), os.getcwd()))
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")  # what was started is not run again in each process
        try:
            process.start()
        finally:
            sys.modules["__main__"] = main
        theirs.close()
        return _Process(process, ours)

    def _ended(self) -> Iterator[tuple[Item, Outcome]]:
        """Yield the items that have ended, or had to be, within a moment."""
        ready = wait([x for one in self._busy for x in (one.connection, one.process.sentinel)], _LOOK_S)
        for one in [*self._busy]:
            item, seconds = one.item, time.monotonic() - one.began
            assert item is not None
            if one.connection in ready or one.process.sentinel in ready:
                answer = _received(one.connection)
            elif one.running() > item.limit_s:
                answer = None
            else:
                continue
            self._busy.remove(one)
            if answer is None:
                one.end()
                yield item, Outcome(lost=seconds)
            else:
                self._idle.append(one)
                yield item, Outcome(**answer, seconds=seconds)


def _take_ready(waiting: deque[Item], unfinished: set[str]) -> Item | None:
    found = next((item for item in waiting if unfinished.isdisjoint(item.needs)), None)
    if found is not None:
        waiting.remove(found)
    return found


def _received(connection: Connection) -> dict[str, Any] | None:
    """Return the answer that has come; None where the process ended without one."""
    try:
        answer: dict[str, Any] = connection.recv()
    except (EOFError, OSError):
        return None
    return answer


def _serve(session: Session, connection: Connection, environment: Mapping[str, str], folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    child.silence()
    warnings.simplefilter("ignore")
    work = child.Deferred(session.work, session.payload)
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(work.answer(*connection.recv()))
