"""Controller of a session: it sends items to workers, receives their outcomes, and outlives them.

At any time only a few items for each thread of each worker are under way, so that what is told, and what memory it
takes, does not grow with how many there are. A worker that is lost gives back what it was doing. An item that took
several workers with it is given up. A scheduler that is lost is waited for, and what was under way is sent anew.
"""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from distributed import Client, Future, KilledWorker

from veriformer.workers.address import NoSchedulerError
from veriformer.workers.on_worker import TakesUp, different, perform
from veriformer.workers.place import connect
from veriformer.workers.session import ClusterError, Extra, Item, LostError, Outcome, Session, Tell

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
        """Run all items, and report each outcome as it comes.

        extra: what is said of an item alone, asked when all that it needs has been told. Raises LostError where the
        scheduler or the workers stay away; ClusterError where no worker can do the work.
        """
        Dispatch(self, list(items), tell, extra, lambda: None).go()

    def serve(self, source: Callable[[], Item | None], tell: Tell, extra: Extra = lambda item: None) -> None:
        """Run items on demand, each when there is room for it, until the source has none and all are finished.

        A source that has none while some are under way is asked again when one of them has been told.
        """
        Dispatch(self, [], tell, extra, source).go()

    # What a run asks of this side

    def submit(self, items: Sequence[tuple[Item, Any]], key: str, put: Callable[[Ended], None]) -> Future:
        """Send items with their extra arguments; put is called with their future and its answers when it has ended."""
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
        """Return on how many workers an item was among the last that began, one for each thread of a worker."""
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
        assert self._client is not None
        found: dict[str, list[str]] = self._client.run(different, self.session.name)
        return found


def _fetched(client: Client, future: Future, put: Callable[[Ended], None]) -> None:
    """Put a future with its result, or None where it has none; without waiting for it here.

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


_BATCH_S, _BATCH = 0.1, 50
"""Items that take no time are sent together: as many as this time holds of those that were last told of, and no more
than so many."""

_LAST_ON = 2
"""An item that is given up with its workers has ended them if it was the last to begin on so many. On one it may have
been done already, when another ended the worker before either was told."""

_GIVEN_BACK = 3
"""An item that was given up so often with its workers has ended them, even if nobody saw it begin."""

Ended = tuple[Future, Any]
"""A future that has ended and the answers that it holds, None where it holds none."""


class Side(Protocol):
    """Interface of the process that talks to the scheduler."""

    @property
    def connected(self) -> bool:
        """True if the scheduler is there."""

    def room(self) -> int:
        """Return the number of tasks that may be under way."""

    def submit(self, items: Sequence[tuple[Item, Any]], key: str, put: Callable[[Ended], None]) -> Future:
        """Send items with their extra arguments; put is called with their future and its answers when it has ended."""

    def stranded(self, future: Future) -> bool:
        """Return whether no worker that may do it is left."""

    def again(self) -> None:
        """Wait for the scheduler to come back."""

    def ban(self, worker: str, different: Sequence[str]) -> None:
        """Send nothing more to a worker."""

    def last_on(self, item: str) -> int:
        """Return on how many workers an item was among the last that began."""


class Dispatch:
    """Pass over items that wait, are ready or are under way."""

    def __init__(
        self, side: Side, items: Sequence[Item], tell: Tell, extra: Extra, source: Callable[[], Item | None]
    ) -> None:
        self.side, self.tell, self.extra, self.source = side, tell, extra, source
        self.items = {item.name: item for item in items}
        self.open = {item.name: sum(need in self.items for need in item.needs) for item in items}
        self.rests: dict[str, list[str]] = {}
        for item in items:
            for need in item.needs:
                self.rests.setdefault(need, []).append(item.name)
        self.ready = deque(name for name, needs in self.open.items() if not needs)
        self.under_way: dict[Future, list[str]] = {}
        self.ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self.given_back: Counter[str] = Counter()
        self.alone: set[str] = set()
        self.sent = 0
        self.seconds = _BATCH_S
        self.left = len(items)

    def go(self) -> None:
        """Dispatch items and receive outcomes until none is left."""
        try:
            self._send()
            while self.left:
                self._hear()
                self._send()
        finally:
            for future in self.under_way:
                future.cancel()

    def _send(self) -> None:
        while len(self.under_way) < self.side.room() and self.side.connected:
            names = self._together()
            if not names:
                return
            self.sent += 1
            said = [(self.items[name], self.extra(self.items[name])) for name in names]
            try:
                self.under_way[self.side.submit(said, f"{names[0]}-{self.sent}", self.ended.put)] = names
            except Exception:  # whatever distributed raises where the scheduler goes at this moment
                self.ready.extendleft(reversed(names))
                if self.side.connected:
                    raise

    def _together(self) -> list[str]:
        """Take the next batch: one item, or several quick ones; an item that has lost its worker goes alone."""
        first = self._drawn()
        names = [] if first is None else [first]
        room = min(_BATCH, int(_BATCH_S / max(self.seconds, 1e-9)))
        while names and self.ready and len(names) < room and not self.alone & {names[0], self.ready[0]}:
            if self.items[self.ready[0]].resources != self.items[names[0]].resources:
                break
            names.append(self.ready.popleft())
        return names

    def _drawn(self) -> str | None:
        if self.ready:
            return self.ready.popleft()
        item = self.source()
        if item is None:
            return None
        self.items[item.name], self.open[item.name] = item, 0
        self.left += 1
        return item.name

    def _hear(self) -> None:
        """Handle all ended futures; where the scheduler is gone, requeue everything."""
        ended = self._ended()
        if not self.side.connected or any(future.status == "cancelled" for future, _ in ended):
            self.ready.extendleft(reversed([name for names in self.under_way.values() for name in names]))
            self.under_way = {}
            self.ended = queue.SimpleQueue()
            self.side.again()
            return
        if not ended:
            self._take_back()
        for future, answers in ended:
            names = self.under_way.pop(future)
            if answers is not None:
                for name, answer in zip(names, answers, strict=True):
                    self._answered(name, answer)
            elif self.side.connected:
                self._failed(future, names)
            else:
                self.ready.extendleft(reversed(names))

    def _take_back(self) -> None:
        """Requeue items whose workers are gone; give up an item that was the last to begin on enough of them."""
        for future in [future for future in self.under_way if self.side.stranded(future)]:
            future.cancel()
            names = self.under_way.pop(future)
            if len(names) == 1 and self.side.last_on(names[0]) >= _LAST_ON:
                self._finish(names[0], Outcome(lost=0.0))
            else:
                self.alone.update(names if len(names) > 1 else ())
                self.ready.extendleft(reversed(names))

    def _ended(self) -> list[Ended]:
        try:
            ended = [self.ended.get(timeout=0.5)]
        except queue.Empty:
            return []
        while not self.ended.empty():
            ended.append(self.ended.get())
        return [(future, answers) for future, answers in ended if future in self.under_way]

    def _answered(self, name: str, answer: Mapping[str, Any]) -> None:
        if "different" in answer:
            self.side.ban(answer["worker"], answer["different"])
            self.ready.appendleft(name)
            return
        outcome = Outcome(**answer)
        self.seconds += (outcome.seconds - self.seconds) / 8 if outcome.lost is None else 0.0
        self._finish(name, outcome)

    def _failed(self, future: Future, names: Sequence[str]) -> None:
        """Handle a future without a result: its items are lost, or ended the workers that they were sent to."""
        if len(names) > 1:
            self.alone.update(names)
            self.ready.extendleft(reversed(names))
            return
        name = names[0]
        error = future.exception() if future.status == "error" else None
        if error is not None and not isinstance(error, KilledWorker):
            self._finish(name, Outcome(error=f"{type(error).__name__}: {error}"))
            return
        self.given_back[name] += error is not None
        last = str(error.last_worker.address) if error is not None else ""
        if last and (self.side.last_on(name) >= _LAST_ON or self.given_back[name] >= _GIVEN_BACK):
            self._finish(name, Outcome(lost=0.0, worker=last))
        else:
            self.ready.appendleft(name)

    def _finish(self, name: str, outcome: Outcome) -> None:
        self.left -= 1
        self.tell(self.items.pop(name), outcome)
        for other in self.rests.pop(name, ()):
            self.open[other] -= 1
            if not self.open[other]:
                self.ready.append(other)
