"""Ours and others taking turns: times of each side, and what their ratios tell in spite of noise.

On a shared machine a time means little, and a ratio of two times that lie a moment apart means much. In every round
each side runs once, in random order, and ours runs a second time under another name: how far the ratio of the two
strays from 1 is the noise of every ratio here."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb, inf
from statistics import median
from typing import Any

import torch

from veriformer.bench.document import Conditions, Goal, Peer
from veriformer.bench.verdicts import Verdict

Run = Callable[[], object]
CLOCKS: dict[str, Callable[[], float]] = {"wall": lambda: _finished_s(), "cpu": time.process_time}
OURS, AGAIN = "ours", "ours again"
FEWEST_ROUNDS = 6  # with fewer, no interval holds the median at 95 %
_SHORTEST = 0.05  # seconds of a turn: what is quicker runs several times


@dataclass(frozen=True)
class Estimate:
    """A ratio: its median over the rounds, the interval that holds the median at 95 %, and the noise as a factor."""

    ratio: float
    interval: tuple[float, float]
    noise: float

    def judge(self, goal: Goal) -> Verdict:
        """Judge whether the goal is reached, where neither the interval nor the noise leaves a doubt."""
        low = min(self.interval[0], self.ratio / self.noise)
        high = max(self.interval[1], self.ratio * self.noise)
        reached, missed = (low >= goal.ratio, high < goal.ratio)
        if goal.kind == "at most":
            reached, missed = (high <= goal.ratio, low > goal.ratio)
        return Verdict.CONFIRMED if reached else Verdict.REFUTED if missed else Verdict.INCONCLUSIVE


@dataclass(frozen=True)
class Times:
    """Seconds of one run of each side, round by round; ours is there twice."""

    seconds: Mapping[str, Sequence[float]]

    def of(self, side: str) -> float:
        """Return the median."""
        return median(self.seconds[side])

    def speed(self, side: str, factor: float = 1.0) -> Estimate:
        """Estimate the speed of ours over a side's: factor · t_theirs / t_ours, where our run does `factor` times the
        work.
        """
        return self._estimate([factor * theirs / ours for ours, theirs in self._pairs(side)])

    def time(self, side: str, factor: float = 1.0) -> Estimate:
        """Estimate the time of ours over a side's, per work: t_ours / (factor · t_theirs)."""
        return self._estimate([ours / theirs / factor for ours, theirs in self._pairs(side)])

    def _pairs(self, side: str) -> list[tuple[float, float]]:
        both = zip(self.seconds[OURS], self.seconds[AGAIN], strict=True)
        return list(zip([(a + b) / 2 for a, b in both], self.seconds[side], strict=True))

    def _estimate(self, ratios: Sequence[float]) -> Estimate:
        low, high = interval([a / b for a, b in zip(self.seconds[OURS], self.seconds[AGAIN], strict=True)])
        return Estimate(median(ratios), interval(ratios), max(high, 1 / low, 1.0))


def interleaved_benchmark(
    sides: Mapping[str, Run],
    *,
    rounds: int,
    clock: str = "wall",
    tell: Callable[[int], None] = lambda _: None,
    seconds: float = inf,
) -> Times:
    """Let all sides take turns, among them `OURS`; `tell` is called with the number of each round.

    After `seconds` no further round is begun, once there are as many as an interval needs.
    """
    repeats = {name: _repeats(run) for name, run in sides.items()}
    sides, repeats[AGAIN] = {**sides, AGAIN: sides[OURS]}, repeats[OURS]
    order, shuffle = list(sides), random.Random(0).shuffle
    found: dict[str, list[float]] = {name: [] for name in sides}
    end = time.monotonic() + seconds
    for number in range(rounds):
        if number >= FEWEST_ROUNDS and time.monotonic() > end:
            break
        tell(number)
        shuffle(order)
        for name in order:
            found[name].append(_time(sides[name], repeats[name], CLOCKS[clock]))
    return Times(found)


def _repeats(run: Run) -> int:
    """Return the number of runs per turn; the runs timed to find it are the warm-up."""
    seconds = min(_time(run, 1, _finished_s) for _ in range(3))
    return min(max(1, ceil(_SHORTEST / seconds)), 10_000)


def _finished_s() -> float:
    """Return the seconds of the wall clock once a GPU has done all that it was given."""
    if torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _time(run: Run, repeats: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(repeats):
        run()
    return (clock() - begin) / repeats


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The narrowest pair of order statistics between which the median lies at this confidence, for any distribution.

    The k smallest of n values are all above the median with the probability that n fair coins show fewer than k heads.
    """
    ordered, n, k = sorted(values), len(values), 0
    while 2 * sum(comb(n, i) for i in range(k + 2)) <= (1 - confidence) * 2**n:
        k += 1
    return ordered[k], ordered[n - 1 - k]


Tell = Callable[[str], None]
Timed = tuple[Times, Conditions]


@dataclass(frozen=True)
class Schedule:
    """Schedule of a timing: the number of rounds, the clock, and a callback for each step of progress.

    seconds: after which a comparison begins no further round, once there are as many as an interval needs.
    """

    rounds: int
    clock: str = "wall"
    tell: Tell = lambda _: None
    seconds: float = inf

    def run(self, what: str, sides: Mapping[str, Run]) -> Timed:
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

    def timed(self, estimate: Estimate, values: Mapping[str, float], conditions: Conditions | None) -> Peer:
        """Return the record of two times."""
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
        """Return the record of two exact counts."""
        exact = Estimate(ours / theirs, (ours / theirs, ours / theirs), 1.0)
        return self.timed(exact, {OURS: ours, self.theirs: theirs}, None)

    def rate(self, timed: Timed, amount: float) -> Peer:
        """Return the record of two amounts per second."""
        times, conditions = timed
        shown = {side: amount / times.of(side) for side in (OURS, self.theirs)}
        return self.timed(times.speed(self.theirs), shown, conditions)

    def duration(self, timed: Timed) -> Peer:
        """Return the record of two times in milliseconds."""
        times, conditions = timed
        shown = {side: 1e3 * times.of(side) for side in (OURS, self.theirs)}
        return self.timed(times.time(self.theirs), shown, conditions)

    def unanswered(self, reason: object) -> Peer:
        """Return the record of what could not be timed."""
        return self._record(reason=str(reason).splitlines()[0][:300])

    def _record(self, **found: Any) -> Peer:
        own: dict[str, Any] = {name: getattr(self, name) for name in ("case", "what", "theirs", "quantity", "goal")}
        return Peer(**own, **found)


def at_least(ratio: float) -> Goal:
    """Reached by this ratio and all above."""
    return Goal(kind="at least", ratio=ratio)


def at_most(ratio: float) -> Goal:
    """Reached by this ratio and all below."""
    return Goal(kind="at most", ratio=ratio)
