"""Chance of dropout: confidence intervals of statistics, left by correct implementations at a stated error rate.

A rate is the requested one, or one of its neighbours among the multiples of 1/256, in which kernels may count.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference, Violation
from veriformer.verify.judging.trial import Trial

ERROR_RATE = 1e-9
"""Probability that a test of chance accuses a correct implementation."""

_STEPS = 256


def interval(n: int, q: float) -> tuple[float, float]:
    """Return the interval of the share of successes among n independent trials of probability q, but for ERROR_RATE.

    Chernoff: P(share ≥ s) ≤ exp(−n KL(s ‖ q)) for s > q, and the same below.
    """

    def divergence(s: float) -> float:
        terms = ((s, q), (1.0 - s, 1.0 - q))
        return math.fsum(a * math.log(a / b) if b > 0 else math.inf for a, b in terms if a > 0)

    return _edge(divergence, n, q, 0.0), _edge(divergence, n, q, 1.0)


def interval_of_squares(n: int) -> tuple[float, float]:
    """Return the interval of the mean square of n independent standard normal variables, but for ERROR_RATE.

    Chernoff: P(mean ≥ s) ≤ exp(−n (s − 1 − log s) / 2) for s > 1, and the same below.
    """

    def divergence(s: float) -> float:
        return (s - 1.0 - math.log(s)) / 2.0 if s > 0 else math.inf

    return _edge(divergence, n, 1.0, 0.0), _edge(divergence, n, 1.0, 100.0)


def _edge(divergence: Callable[[float], float], n: int, inside: float, outside: float) -> float:
    """Return the point between ``inside`` and ``outside`` where n · divergence = log(2 / ERROR_RATE)."""
    needed = math.log(2.0 / ERROR_RATE) / n
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if divergence(middle) <= needed else (inside, middle)
    return outside


def share(n: int, q: float) -> Reference:
    """Return the reference of the share of successes among n independent trials of probability q."""
    return _within(*interval(n, q))


def shares(n: np.ndarray, q: float) -> Reference:
    """Return the reference of several shares of successes among n trials each, together at the error rate of one.

    Hoeffding: P(|share − q| ≥ t) ≤ 2 exp(−2 n t²).
    """
    edges = np.sqrt(math.log(2.0 * len(n) / ERROR_RATE) / (2.0 * n))
    return Reference(np.full(len(n), q), edges, scale=1.0, constant=True)


def mean_square(n: int) -> Reference:
    """Return the reference of the mean square of n independent standard normal variables."""
    return _within(*interval_of_squares(n))


def mean(n: int) -> Reference:
    """Return the reference of the mean of n independent standard normal variables: N(0, 1 / n)."""
    edge = math.sqrt(2.0 * math.log(2.0 / ERROR_RATE) / n)
    return _within(-edge, edge)


def _within(low: float, high: float) -> Reference:
    return Reference(np.asarray((low + high) / 2), np.asarray((high - low) / 2), scale=1.0)


def kept_share(weights: torch.Tensor) -> torch.Tensor:
    """Return the share of nonzero weights."""
    return (weights != 0).double().mean()


def agreement(weights: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Return the share of disjoint pairs at distance ``lag`` along an axis of which both are kept or both dropped."""
    axis, lag = place.tolist()
    kept = (weights != 0).movedim(axis, 0)
    pairs = kept[: kept.shape[0] // (2 * lag) * 2 * lag].reshape(-1, 2, lag, *kept.shape[1:])
    return (pairs[:, 0] == pairs[:, 1]).double().mean()


def under_its_rate(trial: Trial, p: float, judge: Callable[[float], None]) -> None:
    """Judge under the requested rate, or else under a neighbour that the target may use instead.

    Raises the violation under the rate asked for where all of them are violated.
    """
    try:
        judge(p)
    except Violation:
        worst = trial.statistics.worst_ratio
        for rate in _neighbours(p):
            trial.statistics.worst_ratio = None
            try:
                judge(rate)
            except Violation:
                continue
            trial.statistics.remark = f"a rate of {p:g} is rounded to {rate:g}, which its scale fits"
            return
        trial.statistics.worst_ratio = worst
        raise


def _neighbours(p: float) -> list[float]:
    """Return the multiples of 1/256 next to p, except for 1, which has no scale."""
    steps = {math.floor(p * _STEPS), math.ceil(p * _STEPS)} - {_STEPS}
    return [step / _STEPS for step in sorted(steps) if step != p * _STEPS]
