"""Schedule of peer benchmarks, and records of their times."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

import torch

from veriformer.bench.document import Conditions, Goal, Peer
from veriformer.bench.peers.interleaved_benchmark import OURS, Estimate, Run, Times, interleaved_benchmark

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Schedule:
    """Schedule of a timing: the number of rounds, the clock, and a callback for each step of progress.

    seconds: after which a comparison begins no further round, once there are as many as an interval needs.
    """

    rounds: int
    clock: str = "wall"
    tell: Tell = lambda _: None
    seconds: float = inf

    def run(self, what: str, sides: Mapping[str, Run]) -> tuple[Times, Conditions]:
        """Let the sides take turns."""
        self.tell(f"{what}: warming up {len(sides)} sides")
        before = os.getloadavg()[0]
        times = interleaved_benchmark(
            sides,
            rounds=self.rounds,
            clock=self.clock,
            seconds=self.seconds,
            tell=lambda number: self.tell(f"{what}: round {number + 1} of {self.rounds}"),
        )
        load = [round(before, 2), round(os.getloadavg()[0], 2)]
        return times, Conditions(
            rounds=len(times.seconds[OURS]), threads=torch.get_num_threads(), clock=self.clock, load=load
        )


Case = Callable[[Schedule], Iterator[Peer]]
"""Gives its records as they are found."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Comparison of one pair of sides, and its goal."""

    case: str
    what: str
    theirs: str
    quantity: str
    goal: Goal | None = None

    def timed(self, estimate: Estimate, values: Mapping[str, float], conditions: Conditions) -> Peer:
        """The record of two times."""
        low, high = estimate.interval
        return self._record(
            values=dict(values),
            ratio=estimate.ratio,
            interval=[low, high],
            noise=estimate.noise,
            verdict=estimate.judge(self.goal) if self.goal else None,
            conditions=conditions,
        )

    def counted(self, ours: int, theirs: int) -> Peer:
        """The record of two exact counts."""
        exact = Estimate(ours / theirs, (ours / theirs, ours / theirs), 1.0)
        return self._record(
            values={"ours": ours, self.theirs: theirs},
            ratio=exact.ratio,
            interval=list(exact.interval),
            noise=exact.noise,
            verdict=exact.judge(self.goal) if self.goal else None,
        )

    def unanswered(self, reason: object) -> Peer:
        """The record of what could not be timed."""
        return self._record(reason=str(reason).splitlines()[0][:300])

    def _record(self, **found: object) -> Peer:
        nothing = dict.fromkeys(("ratio", "interval", "noise", "verdict", "reason", "conditions"))
        own = {"case": self.case, "what": self.what, "theirs": self.theirs, "quantity": self.quantity}
        return Peer(**{**own, "goal": self.goal, "values": {}, **nothing, **found})  # type: ignore[arg-type]


def at_least(ratio: float) -> Goal:
    """Reached by this ratio and all above."""
    return Goal(kind="at least", ratio=ratio)


def at_most(ratio: float) -> Goal:
    """Reached by this ratio and all below."""
    return Goal(kind="at most", ratio=ratio)
