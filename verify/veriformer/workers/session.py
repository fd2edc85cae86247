"""Shared state of all processes of one piece of work, as plain data that travels once to each worker."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class Work(Protocol):
    """Interface of the class that does the items, in a process of its own. It is made from the payload when the first
    item comes."""

    def __init__(self, payload: Any) -> None: ...

    def run(self, item: str, extra: Any) -> Any:
        """Do one item; extra is what is said of it alone. What is returned has to be JSON."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """Session: one piece of work.

    work: ``package.module:Class``. payload: what that class is made from, JSON. files: what has to lie in the folder
    that the items run in and import from, by relative path; wheels among them are installed there. versions: that
    workers must have. threads: that numerical libraries may use in each process.
    """

    work: str
    payload: Any
    files: Mapping[str, bytes] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    threads: int = 1
    name: str = field(default_factory=lambda: f"veriformer-{uuid.uuid4().hex[:12]}")

    def described(self) -> str:
        """Return the first message to the process that does the items, as JSON."""
        return json.dumps({"work": self.work, "payload": self.payload, "threads": self.threads})


@dataclass(frozen=True, kw_only=True)
class Item:
    """Unit of work.

    name: unique in its session. needs: names of items that have to be finished first. limit_s: seconds after which its
    process is ended. resources: those that a worker must have free for it, such as ``{"GPU": 1}``.
    """

    name: str
    needs: tuple[str, ...] = ()
    limit_s: float = 3600.0
    resources: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of an item: a value, or else the reason why there is none.

    value: what its work returned. error: of the suite's own, as text. lost: seconds after which the process that did
    it was gone, or had to be ended. seconds: that it took there. worker: the address where.
    """

    value: Any = None
    error: str | None = None
    lost: float | None = None
    seconds: float = 0.0
    worker: str = ""


class ClusterError(Exception):
    """The workers cannot do this work; the message names the missing or different part."""


class LostError(Exception):
    """The scheduler, or every worker, was gone for longer than the limit. Finished items have been reported."""


Tell = Callable[[Item, Outcome], None]
Extra = Callable[[Item], Any]


class Executor(Protocol):
    """Executor of the items of a session: processes of this machine, or the workers of a scheduler."""

    @property
    def dashboard(self) -> str:
        """Address of a page that shows the progress; empty where there is none."""

    @property
    def resources(self) -> Sequence[Mapping[str, float]]:
        """Resources of each worker, with its number of threads as ``threads``."""

    def run(self, items: Iterable[Item], tell: Tell, extra: Extra = lambda item: None) -> None:
        """Run all items, and pass the outcome of each to ``tell`` as it comes.

        extra: data for one item, asked for once the outcomes of all that it needs are told. Raises LostError or
        ClusterError.
        """
