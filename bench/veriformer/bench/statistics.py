"""Statistics of noisy times: verdicts on two arms in pairs of fresh processes, shares of tries, and elasticities.

A block is one pair of processes. Inside it the arms run in the order ABBA and BAAB, so that a drift that is linear over
four turns cancels. Between blocks the processes are new: where memory lies, and what else differs from one start of a
program to the next, is part of the spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, inf, log, pi, sqrt
from statistics import mean, median, stdev

import numpy as np
from numpy.typing import NDArray

_OF_A_NORMAL = 1.4826
"""The standard deviation of a normal distribution over its median deviation."""


class Change(StrEnum):
    """Verdict on the head against its base."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    AMBIGUOUS = "ambiguous"
    INVALID = "invalid"
    """Nothing was measured that could be compared; the reason says why."""


@dataclass(frozen=True)
class Block:
    """Seconds of one pair of processes, turn by turn; turns 2i and 2i + 1 of both arms are one quad, ABBA or BAAB."""

    base: Sequence[float]
    head: Sequence[float]

    @property
    def log_ratio(self) -> float:
        """Return the logarithm of head / base: the median over the quads."""
        return median(self._log_ratios())

    @property
    def standard_error(self) -> float:
        """Standard error of the median, from the median deviation of the quads, which bursts do not move."""
        ratios = self._log_ratios()
        middle = median(ratios)
        deviation = _OF_A_NORMAL * median(abs(ratio - middle) for ratio in ratios)
        return sqrt(pi / 2) * deviation / sqrt(len(ratios))

    def _log_ratios(self) -> list[float]:
        quads = zip(self.base[::2], self.base[1::2], self.head[::2], self.head[1::2], strict=True)
        return [log(c + d) - log(a + b) for a, b, c, d in quads]


@dataclass(frozen=True)
class Floors:
    """Floors that a change must exceed to be called one.

    relative: a share of the base's time. absolute: seconds. error: of each one-sided test.
    """

    relative: float = 0.03
    absolute: float = 2e-6
    error: float = 0.01

    @property
    def log(self) -> float:
        """Return the relative floor as a logarithm of a ratio; the same for slower and faster."""
        return log(1 + self.relative)


@dataclass(frozen=True)
class Judgement:
    """A verdict with the ratio head / base, the interval that the tests rest on, and the reason."""

    change: Change
    ratio: float
    interval: tuple[float, float]
    reason: str


def judge(blocks: Sequence[Block], floors: Floors, fresh: Block | None = None) -> Judgement:
    """Return the verdict on some blocks, and on one more that was measured to confirm them.

    Slower (or faster, by the same rules on the other side): the mean of the log ratios is beyond the relative floor
    and the absolute one, Student's test at `error` finds it above nothing, every block agrees in its sign, and a fresh
    pair of processes shows more than the relative floor again. Same: two one-sided tests at `error` place it within the
    relative floor. All else is ambiguous. Exchanging the arms exchanges the verdict.
    """
    ratios = [block.log_ratio for block in blocks]
    centre, low, high = _interval(ratios, floors.error)
    shown = (exp(centre), (exp(low), exp(high)))
    sign = 1 if centre > 0 else -1
    if max(abs(low), abs(high)) < floors.log:
        return Judgement(Change.SAME, *shown, f"within {floors.relative:.0%}")
    reason = _doubt(blocks, ratios, sign, (low, high), floors)
    if reason is None and fresh is None:
        reason = "not confirmed in a fresh process"
    elif reason is None and fresh is not None and sign * fresh.log_ratio <= floors.log:
        reason = f"a fresh process shows {exp(fresh.log_ratio) - 1:+.1%}"
    if reason is not None:
        return Judgement(Change.AMBIGUOUS, *shown, reason)
    change = Change.SLOWER if sign > 0 else Change.FASTER
    return Judgement(change, *shown, f"by {exp(centre) - 1:+.1%}, all {len(blocks)} pairs and a fresh one agree")


def is_steady(block: Block, floors: Floors) -> bool:
    """Return whether a block determines its ratio to a third of the relative floor, however large the ratio is."""
    return block.standard_error <= floors.log / 3


def suspects(blocks: Sequence[Block], floors: Floors) -> bool:
    """Return whether a fresh pair of processes would decide the verdict."""
    return judge(blocks, floors).reason == "not confirmed in a fresh process"


def _interval(ratios: Sequence[float], error: float) -> tuple[float, float, float]:
    """Return the mean, and Student's bounds that each err with probability `error`."""
    centre = mean(ratios)
    if len(ratios) < 2:
        return centre, -inf, inf
    from scipy import stats  # which takes half a second, and who reads what was measured needs none of it

    half = float(stats.t.ppf(1 - error, len(ratios) - 1)) * stdev(ratios) / len(ratios) ** 0.5
    return centre, centre - half, centre + half


def _doubt(
    blocks: Sequence[Block], ratios: Sequence[float], sign: int, bounds: tuple[float, float], floors: Floors
) -> str | None:
    """Return why a change is not beyond doubt, before new measurements; None where it is."""
    centre = mean(ratios)
    if abs(centre) <= floors.log:
        return f"{exp(centre) - 1:+.1%} is within the floor of {floors.relative:.0%}, the interval is not"
    difference = median([mean(b.head) for b in blocks]) - median([mean(b.base) for b in blocks])
    if abs(difference) <= floors.absolute:
        return f"{abs(difference):.2g} s of difference is within the absolute floor of {floors.absolute:.2g} s"
    if bounds[0] <= 0 <= bounds[1]:
        return f"{exp(centre) - 1:+.1%}, which noise explains"
    disagreeing = sum(sign * ratio <= 0 for ratio in ratios)
    return f"{disagreeing} of {len(ratios)} pairs of processes disagree" if disagreeing else None


@dataclass(frozen=True)
class Share:
    """Number of events in a number of tries."""

    count: int
    tries: int

    @property
    def interval(self) -> tuple[float, float]:
        """Return where the probability lies, at 95 %."""
        if not self.tries:
            return 0.0, 1.0
        from scipy import stats  # as above

        found = stats.binomtest(self.count, self.tries).proportion_ci(0.95, "exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count} of {self.tries} (95 %: {low:.1%} to {high:.1%})"


Times = Mapping[int, Sequence[float]]
"""Size to seconds of the calls of that size in one process."""

Reals = NDArray[np.float64]
_RESAMPLES = 1000


@dataclass(frozen=True)
class Slope:
    """The Theil–Sen slope, with bootstrap values of it from which every interval follows."""

    value: float
    resampled: tuple[float, ...]

    def interval(self, error: float) -> tuple[float, float]:
        """Return bounds that each err with probability `error`."""
        low, high = np.quantile(self.resampled, [error, 1 - error])
        return float(low), float(high)

    def outside(self, band: tuple[float, float]) -> float:
        """Return the p-value of the hypothesis that the slope is outside the band: both one-sided tests must reject."""
        values = np.asarray(self.resampled)
        return float(max(_share(values <= band[0]), _share(values >= band[1])))

    def inside(self, band: tuple[float, float]) -> float:
        """Return the p-value of the hypothesis that the slope lies in the band."""
        values = np.asarray(self.resampled)
        return float(min(1.0, 2 * min(_share(values >= band[0]), _share(values <= band[1]))))


def theil_sen(processes: Sequence[Times], seed: int = 0) -> Slope:
    """Return the slope of log seconds over log size; processes are resampled, and in each of them its calls.

    Every process has the same sizes, at least two, and the same number of calls of each.
    """
    random = np.random.default_rng(seed)
    sizes = sorted(processes[0])
    logs = np.log([[times[size] for size in sizes] for times in processes])  # [process, size, turn]
    count, turns = logs.shape[0], logs.shape[2]
    which = random.integers(count, size=(_RESAMPLES, count, 1, 1))
    turn = random.integers(turns, size=(_RESAMPLES, count, len(sizes), turns))
    again = logs[which, np.arange(len(sizes))[:, None], turn]  # [resample, process, size, turn]
    resampled = _slopes(np.median(np.median(again, axis=3), axis=1), sizes)
    value = _slopes(np.median(np.median(logs, axis=2), axis=0)[None], sizes)
    return Slope(float(value[0]), tuple(resampled.tolist()))


def holm(p_values: Sequence[float], error: float) -> list[bool]:
    """Return the hypotheses that Holm's test rejects, at a family-wise error rate of `error`."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = [False] * len(p_values)
    for rank, i in enumerate(order):
        if p_values[i] > error / (len(p_values) - rank):
            break
        rejected[i] = True
    return rejected


def _slopes(rows: Reals, sizes: Sequence[int]) -> Reals:
    """Return the median slope over all pairs of sizes, for each row of log seconds: Theil and Sen's."""
    first, second = np.triu_indices(len(sizes), 1)
    x = np.log(sizes)
    return np.median((rows[:, second] - rows[:, first]) / (x[second] - x[first]), axis=1)  # type: ignore[no-any-return]


def _share(hits: NDArray[np.bool_]) -> float:
    """Return a bootstrap p-value, which is never 0."""
    return float((hits.sum() + 1) / (hits.size + 1))
