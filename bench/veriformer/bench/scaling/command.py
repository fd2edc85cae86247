"""``bench scaling``: the whole of one run, as a person asks for it.

From times to verdicts there is an equivalence test for each sweep, and Holm's correction over all of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

from rich.console import Console
from rich.text import Text

from veriformer.bench.document import Benchmarks
from veriformer.bench.environment import environment
from veriformer.bench.progress import Progress
from veriformer.bench.scaling import terminal
from veriformer.bench.scaling.measure import Plan, Series, measure, too_fast
from veriformer.bench.scaling.prediction import band, fit
from veriformer.bench.scaling.record import Scaling
from veriformer.bench.scaling.sweeps import Sweep
from veriformer.bench.statistics.slopes import Slope, holm, theil_sen
from veriformer.bench.verdicts import Verdict
from veriformer.spec import suite

MARGIN = 0.2
"""Distance outside the predicted band up to which an elasticity counts as equal to it."""
ERROR = 0.05
"""The probability that any verdict of a run is wrong."""
_FEWEST_POINTS, _LEAST_SPAN = 4, 8


def run(target: str, sweeps: Sequence[Sweep], plan: Plan) -> Benchmarks:
    """Measure, judge and show. Raises ArmError."""
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    with Progress() as progress:
        found = terminal.ranked(judge(target, measure(target, sweeps, plan, progress.tell)))
    console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)
    for one in found:
        sign, style = terminal.SIGNS[one.verdict]
        console.print(Text(sign, style=style), terminal.line(one), markup=False, soft_wrap=True)
    console.print(terminal.summary(found), markup=False)
    seconds = round(time.perf_counter() - begin, 3)
    return Benchmarks(
        suite=suite.record(), environment=environment(), started=started, duration_s=seconds, scalings=found
    )


def judge(target: str, series: Sequence[Series]) -> list[Scaling]:
    """Return a verdict for each measured sweep."""
    slopes = {i: theil_sen(one.processes) for i, one in enumerate(series) if _doubt(one) is None}
    bands = {i: _band(series[i]) for i in slopes}
    tests = [(i, slopes[i].outside(bands[i]), slopes[i].inside(bands[i])) for i in slopes]
    equal = dict(zip(slopes, holm([test[1] for test in tests], ERROR), strict=True))
    other = dict(zip(slopes, holm([test[2] for test in tests], ERROR), strict=True))
    found = []
    for i, one in enumerate(series):
        if i not in slopes:
            verdict, reason = _doubt(one) or (Verdict.INCONCLUSIVE, "")
            found.append(_record(target, one, verdict, reason, None))
            continue
        verdict = Verdict.CONFIRMED if equal[i] else Verdict.REFUTED if other[i] else Verdict.INCONCLUSIVE
        found.append(_record(target, one, verdict, _reason(one, slopes[i], verdict), slopes[i]))
    return found


def _band(one: Series) -> tuple[float, float]:
    low, high = band(one.predictors, one.values)
    return low - MARGIN, high + MARGIN


def _doubt(one: Series) -> tuple[Verdict, str] | None:
    """Return the verdict and reason for a sweep that cannot be judged, or None."""
    if one.fault:
        return Verdict.INVALID, one.fault
    if len(one.processes) < 2:
        return Verdict.INVALID, f"{len(one.processes)} processes measured; at least 2 are needed"
    if len(one.values) < _FEWEST_POINTS or one.values[-1] < _LEAST_SPAN * one.values[0]:
        span = f"{one.values[0]} to {one.values[-1]}" if one.values else "none"
        return Verdict.INCONCLUSIVE, f"sizes from launch to limit of time and memory: {span}, too few to tell a slope"
    quick = too_fast(one)
    if quick is not None:
        return Verdict.INVALID, f"at {one.sweep.size} = {quick[0]}: {quick[1]:.1f} times as fast as its products can be"
    return None


def _reason(one: Series, slope: Slope, verdict: Verdict) -> str:
    low, high = band(one.predictors, one.values)
    said = f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}"
    bounds = slope.interval(ERROR / 2)
    grows = f"grows as {one.sweep.size}^{slope.value:.2f} ({bounds[0]:.2f} to {bounds[1]:.2f}), predicted {said}"
    if verdict is Verdict.INCONCLUSIVE:
        return f"{grows}: the interval crosses the edge of what is predicted; more --processes narrow it"
    return grows


def _record(target: str, one: Series, verdict: Verdict, reason: str, slope: Slope | None) -> Scaling:
    costs = one.sweep.costs(one.values) if one.values else {}
    middles = one.middles
    seconds = [median(times) for times in zip(*middles, strict=True)] if middles else []
    return Scaling(
        target=target,
        operation=one.sweep.operation,
        name=one.sweep.name,
        size=one.sweep.size,
        passes="forward and backward" if one.sweep.backward else "forward",
        verdict=verdict,
        reason=reason,
        predicted=list(band(one.predictors, one.values)) if len(one.values) > 1 else None,
        elasticity=slope.value if slope else None,
        interval=list(slope.interval(ERROR / 2)) if slope else None,
        sizes=one.values,
        seconds=middles,
        fit=fit(costs, seconds) if seconds else {},
        fixed=one.sweep.sizes(0) if one.values else {},
    )
