"""Two arms that take turns in pairs of fresh processes, and the verdict on their ratio.

A block is one pair of processes. Inside it the arms run in the order ABBA and BAAB, so that a drift that is linear over
four turns cancels. Between blocks the processes are new: where memory lies, and what else differs from one start of a
program to the next, is part of the spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, inf, log, pi, sqrt
from statistics import mean, median, stdev

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
        """The logarithm of head / base: the median over the quads."""
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
        """The relative floor as a logarithm of a ratio; the same for slower and faster."""
        return log(1 + self.relative)


@dataclass(frozen=True)
class Judgement:
    """A verdict with the ratio head / base, the interval that the tests rest on, and the reason."""

    change: Change
    ratio: float
    interval: tuple[float, float]
    reason: str


def judge(blocks: Sequence[Block], floors: Floors, fresh: Block | None = None) -> Judgement:
    """The verdict on some blocks, and on one more that was measured to confirm them.

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
    """The mean, and Student's bounds that each err with probability `error`."""
    centre = mean(ratios)
    if len(ratios) < 2:
        return centre, -inf, inf
    from scipy import stats  # which takes half a second, and who reads what was measured needs none of it

    half = float(stats.t.ppf(1 - error, len(ratios) - 1)) * stdev(ratios) / len(ratios) ** 0.5
    return centre, centre - half, centre + half


def _doubt(
    blocks: Sequence[Block], ratios: Sequence[float], sign: int, bounds: tuple[float, float], floors: Floors
) -> str | None:
    """Why a change is not beyond doubt, before anything fresh is measured."""
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
