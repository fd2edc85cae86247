"""Scheduling of items as waiting, ready and under way: one pass over them, to the last."""

from __future__ import annotations

import queue
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from distributed import Future, KilledWorker

from veriformer.workers.session import Extra, Item, Outcome, Tell

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
    """Interface of the side that speaks to the scheduler."""

    @property
    def connected(self) -> bool:
        """True if the scheduler is there."""

    def room(self) -> int:
        """Return the number of tasks that may be under way."""

    def submit(self, items: Sequence[tuple[Item, Any]], key: str, put: Callable[[Ended], None]) -> Future:
        """Send items with what is said of each; put is called with their future and its answers when it has ended."""

    def stranded(self, future: Future) -> bool:
        """Return whether no worker that may do it is left."""

    def again(self) -> None:
        """Wait for the scheduler to come back."""

    def ban(self, worker: str, different: Sequence[str]) -> None:
        """Send nothing more to a worker."""

    def last_on(self, item: str) -> int:
        """On how many workers an item was among the last that had begun."""


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
        """Until nothing is left."""
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
        """Take the next batch: one item, or as many as take no time; one that has lost its worker goes alone."""
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
        """Take what has ended, all of it at once; where the scheduler is gone, everything is to be sent anew."""
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
        """Have what nobody is left to do done by others, but for an item that has ended its workers."""
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
        """A future without a result: lost, or given up with the workers that it was sent to."""
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
