"""Rates of dropout: the requested one, and its neighbours among the multiples of 1/256, in which kernels may count."""

from __future__ import annotations

import math
from collections.abc import Callable

from veriformer.verify.judging.judge import Violation
from veriformer.verify.judging.trial import Trial

_STEPS = 256


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
