"""Elasticities ∂ log t / ∂ log n from times in several processes, and whether they are the predicted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        """Bounds that each err with probability `error`."""
        low, high = np.quantile(self.resampled, [error, 1 - error])
        return float(low), float(high)

    def outside(self, band: tuple[float, float]) -> float:
        """The p-value of the hypothesis that the slope lies outside the band: both one-sided tests must reject."""
        values = np.asarray(self.resampled)
        return float(max(_share(values <= band[0]), _share(values >= band[1])))

    def inside(self, band: tuple[float, float]) -> float:
        """The p-value of the hypothesis that the slope lies in the band."""
        values = np.asarray(self.resampled)
        return float(min(1.0, 2 * min(_share(values >= band[0]), _share(values <= band[1]))))


def theil_sen(processes: Sequence[Times], seed: int = 0) -> Slope:
    """The slope of log seconds over log size; processes are resampled, and in each of them its calls.

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
    """The median slope over all pairs of sizes, for each row of log seconds: Theil and Sen's."""
    first, second = np.triu_indices(len(sizes), 1)
    x = np.log(sizes)
    return np.median((rows[:, second] - rows[:, first]) / (x[second] - x[first]), axis=1)  # type: ignore[no-any-return]


def _share(hits: NDArray[np.bool_]) -> float:
    """A bootstrap p-value, which is never 0."""
    return float((hits.sum() + 1) / (hits.size + 1))
