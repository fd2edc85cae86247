"""The side that wants the items done: it sends them out, is told what became of them, and outlives all the others.

At any time only a few items for each thread of each worker are under way, so that what is told, and what memory it
takes, does not grow with how many there are. A worker that is lost gives back what it was doing. An item that took
several workers with it is given up. A scheduler that is lost is waited for, and what was under way is sent anew.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future

from veriformer.workers.address import NoSchedulerError
from veriformer.workers.dispatch import Dispatch, Ended
from veriformer.workers.on_worker import TakesUp, different, perform
from veriformer.workers.place import connect
from veriformer.workers.session import ClusterError, Extra, Item, LostError, Session, Tell

_AHEAD = 3
"""Items under way for each thread: one that runs, and some that wait there, so that no thread waits for us."""

_REMEMBERED = 64
"""Items that are remembered to have begun on a worker, more than it has threads."""

_LOOK_S = 2.0
"""Seconds between requests for the number of threads."""


@dataclass
class Controller:
    """Has the items of a session done at a place.

    patience_s: how long a scheduler, or a first worker, may be away. say: told what a person should know of.
    """

    place: str
    session: Session
    patience_s: float = 60.0
    say: Callable[[str], None] = lambda text: None
    _client: Client | None = field(default=None, init=False)
    _banned: dict[str, str] = field(default_factory=dict, init=False)
    _begun: dict[str, deque[str]] = field(default_factory=dict, init=False)
    _only: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    _threads: dict[str, int] = field(default_factory=dict, init=False)
    _room: int = field(default=4, init=False)
    _looked: float = field(default=0.0, init=False)
    _manned: float = field(default=0.0, init=False)

    def __enter__(self) -> Controller:
        self._open(connect(self.place))
        for worker, words in sorted(self._differences().items()):
            if words:
                self.ban(worker, words)
        if not self._allowed():
            self.__exit__()
            others = ". ".join(f"{worker} has {words}" for worker, words in self._banned.items())
            raise ClusterError(f"no worker has the versions of this process: {others}. Install the same")
        return self

    def __exit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            if client.status == "running":
                client.unregister_worker_plugin(self.session.name)
            client.close(timeout=5)

    @property
    def dashboard(self) -> str:
        """Where the engine shows what it is doing."""
        return str(self._client.dashboard_link) if self._client else ""

    @property
    def resources(self) -> list[Mapping[str, float]]:
        """Resources of each worker, with its number of threads as ``threads``."""
        assert self._client is not None
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return [{**one["resources"], "threads": one["nthreads"]} for one in workers.values()]

    def run(self, items: Iterable[Item], tell: Tell, extra: Extra = lambda item: None) -> None:
        """Do all items, and tell what became of each as it comes.

        extra: what is said of an item alone, asked when all that it needs has been told. Raises LostError where the
        scheduler or the workers stay away; ClusterError where no worker can do the work.
        """
        Dispatch(self, list(items), tell, extra, lambda: None).go()

    def serve(self, source: Callable[[], Item | None], tell: Tell, extra: Extra = lambda item: None) -> None:
        """Do items as they are asked for, each when there is room for it, until the source has none and all are done.

        A source that has none while some are under way is asked again when one of them has been told.
        """
        Dispatch(self, [], tell, extra, source).go()

    # What a run asks of this side

    def submit(self, items: Sequence[tuple[Item, Any]], key: str, put: Callable[[Ended], None]) -> Future:
        """Send items with what is said of each; put is called with their future and its answers when it has ended."""
        assert self._client is not None
        client = self._client
        allowed = self._allowed() if self._banned else None
        future = client.submit(
            perform,
            self.session.name,
            [(item.name, extra, item.limit_s) for item, extra in items],
            key=f"{self.session.name}-{key}",
            pure=False,
            resources=dict(items[0][0].resources) or None,
            workers=allowed,
        )
        if allowed is not None:
            self._only[future.key] = frozenset(allowed)
        future.add_done_callback(lambda ended: _fetched(client, ended, put))
        return future

    def stranded(self, future: Future) -> bool:
        """Return whether no worker that may do it is left: one that comes back has another address."""
        only = self._only.get(future.key)
        return only is not None and self.connected and only.isdisjoint(self._allowed())

    def room(self) -> int:
        """Return the number of items that may be under way. Raises LostError where there has been no worker for them
        for long."""
        now = time.monotonic()
        if now - self._looked > _LOOK_S and self._client and self._client.status == "running":
            try:
                known = self._client.nthreads()
            except OSError:  # the scheduler goes at this moment
                return self._room
            self._threads |= known
            threads = sum(n for worker, n in known.items() if worker not in self._banned)
            self._manned = now if threads else self._manned
            if now - self._manned > self.patience_s:
                raise LostError(f"the scheduler at {self.place} has had no worker for {self.patience_s:g} s")
            self._room = max(4, _AHEAD * threads) if threads else 0
            self._looked = now
        return self._room

    @property
    def connected(self) -> bool:
        """True if the scheduler is there."""
        comm = self._client.scheduler_comm if self._client is not None and self._client.status == "running" else None
        return comm is not None and not comm.comm.closed()

    def again(self) -> None:
        """Wait for the scheduler to come back, and take the session up anew. Raises LostError where it does not."""
        self.say(f"the scheduler is gone; waiting up to {self.patience_s:g} s for it")
        if self._client is not None:
            self._client.close(timeout=1)
        until = time.monotonic() + self.patience_s
        while True:
            try:
                self._open(connect(self.place, seconds=2), until)
            except (NoSchedulerError, LostError, OSError) as error:
                if time.monotonic() > until:
                    raise LostError(f"{error}; it was waited for {self.patience_s:g} s") from error
                time.sleep(0.2)
                continue
            self.say("the scheduler is there again")
            return

    def ban(self, worker: str, different: Sequence[str]) -> None:
        """Send nothing more to a worker of other versions, and say so."""
        if worker not in self._banned:
            self._banned[worker] = "; ".join(different)
            self.say(f"refused worker {worker}: it has {self._banned[worker]}")
            self._looked = 0.0

    def last_on(self, item: str) -> int:
        """On how many workers an item was among the last that had begun, one for each of their threads."""
        return sum(item in list(begun)[-self._threads.get(worker, 1) :] for worker, begun in self._begun.items())

    def _allowed(self) -> list[str]:
        assert self._client is not None
        return [worker for worker in self._client.nthreads() if worker not in self._banned]

    def _open(self, client: Client, until: float | None = None) -> None:
        self._client, self._begun, self._only, self._looked = client, {}, {}, 0.0
        self._manned = time.monotonic()
        until = until or time.monotonic() + self.patience_s
        try:
            client.wait_for_workers(1, timeout=max(1.0, until - time.monotonic()))
        except TimeoutError as error:
            raise LostError(f"the scheduler at {self.place} has no worker") from error
        client.subscribe_topic(self.session.name, self._heard)
        try:
            client.register_plugin(TakesUp(self.session))
        except Exception as error:  # whatever a worker raises while it takes up the session
            client.close(timeout=1)
            raise ClusterError(
                f"a worker could not take up the work: {type(error).__name__}: {error}. Is veriformer installed there?"
            ) from error

    def _heard(self, event: tuple[float, Mapping[str, str]]) -> None:
        _, message = event
        self._begun.setdefault(message["worker"], deque(maxlen=_REMEMBERED)).append(message["item"])

    def _differences(self) -> dict[str, list[str]]:
        """Return the version differences that every worker's session has found."""
        assert self._client is not None
        found: dict[str, list[str]] = self._client.run(different, self.session.name)
        return found


def _fetched(client: Client, future: Future, put: Callable[[Ended], None]) -> None:
    """Put a future with what it holds, or with None where it holds nothing; without waiting for it here.

    Where the worker that has it is gone, the scheduler tries to reach it for half a minute (``comm.timeouts.connect``)
    before it is computed again; all others come meanwhile.
    """

    async def fetch() -> None:
        try:
            found = await client.gather(future, direct=False, asynchronous=True)
        except Exception:  # whatever the item raised, or distributed where a worker or the scheduler goes
            found = None
        put((future, found))

    if future.status == "finished":
        try:
            client.loop.add_callback(fetch)
            return
        except RuntimeError:  # the client is closed
            pass
    put((future, None))
