"""Times of a sweep in several fresh processes, sizes in random order, and the verdicts on them.

From times to verdicts there is an equivalence test for each sweep, and Holm's correction over all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from typing import Any

from veriformer.bench.document import Benchmarks, begin
from veriformer.bench.scaling.record import Scaling, line, ranked, summary
from veriformer.bench.scaling.sweeps import COPY, FLOPS, MOVED, STEPS, Sweep, band, fit
from veriformer.bench.statistics import Slope, holm, theil_sen
from veriformer.bench.terminal import Progress, show
from veriformer.bench.timing.arms import Arm, DiedError, Process
from veriformer.bench.verdicts import SIGNS, Verdict

_ABOVE_LAUNCH = 8
"""Least ratio of the smallest call's time to that of a call of almost no work."""
_SPAN, _LEAST_SPAN = 32, 8
_POINTS = 7
_LONGEST = 0.3
"""Seconds of the longest call."""
_MOST_BYTES = 2**30
_TURN, _TURNS = 0.01, 3
_PASSES = 32
"""Largest time of an implementation, in copies of the least bytes: a pass for each operator of an unfused formula."""
_PATIENCE = 60.0


@dataclass(frozen=True)
class Plan:
    """Number of measuring processes, their clock, and their device."""

    processes: int = 4
    clock: str = "wall"
    device: str = "cpu"


@dataclass
class Series:
    """Measurements of one sweep: by process, seconds of the turns at each size.

    ceiling: FLOP/s of a product. copies: by process, seconds of a copy of as many bytes as each size moves at least.
    """

    sweep: Sweep
    values: list[int] = field(default_factory=list)
    processes: list[dict[int, list[float]]] = field(default_factory=list)
    ceiling: float = float("inf")
    copies: list[dict[int, float]] = field(default_factory=list)
    skipped: str | None = None
    fault: str | None = None

    @property
    def predictors(self) -> dict[str, list[float]]:
        """Costs that may govern the time at each size: the predicted ones, and a copy, whose bytes cost more beyond
        each cache.

        Of several processes the quickest copies count, for all else is the noise of a busy machine, which would
        predict any growth; and what takes longer than a formula's passes over its memory is not governed by copies.
        """
        costs = self.sweep.costs(self.values)
        copying = [min(seconds) for seconds in zip(*([of[v] for v in self.values] for of in self.copies), strict=True)]
        if not copying or min(times[-1] for times in self.middles) > _PASSES * copying[-1]:
            return costs
        return costs | {COPY: copying}

    @property
    def middles(self) -> list[list[float]]:
        """Return the median at each size, process by process."""
        return [[median(times[value]) for value in self.values] for times in self.processes]


def measure(target: str, sweeps: Sequence[Sweep], plan: Plan, tell: Callable[[str], object]) -> list[Series]:
    """Return all series. A pilot process chooses the sizes; the others measure. Raises ArmError."""
    series = [Series(sweep) for sweep in sweeps]
    _each(target, series, plan, lambda process, one: _choose(process, one, tell))
    shuffle = random.Random(0).shuffle
    for number in range(plan.processes):
        waiting = [one for one in series if not one.skipped and not one.fault]
        shuffle(waiting)
        _each(target, waiting, plan, lambda process, one, n=number: _add(process, one, n, plan, tell))  # type: ignore[misc]
    return [one for one in series if not one.skipped]


def _each(target: str, series: Sequence[Series], plan: Plan, do: Callable[[Process, Series], None]) -> None:
    """Do something with each series in one process, and in a fresh one after it ended."""
    waiting = list(series)
    while waiting:
        with Process(Arm(target, (), target), plan.device, plan.clock) as process:
            try:
                while waiting:
                    do(process, waiting[0])
                    waiting.pop(0)
            except DiedError as error:
                waiting.pop(0).fault = f"its process {error}"


def _choose(process: Process, one: Series, tell: Callable[[str], object]) -> None:
    """Choose sizes from where the work outweighs the launch, as far as time and memory allow."""
    sweep = one.sweep
    tell(f"{sweep.name}: choosing sizes")
    one.ceiling = process.ask({"do": "ceiling"}, _PATIENCE)["flops"]
    value = sweep.start
    launch = _seconds(process, one, value)
    while launch is not None and _fits(sweep, value):  # what does no work never outweighs its launch
        seconds = _seconds(process, one, value)
        if seconds is None or seconds >= _ABOVE_LAUNCH * launch or seconds > _LONGEST / _LEAST_SPAN:
            break
        value *= 2
    if one.skipped or one.fault:
        return
    largest, last = value, value
    while largest < _SPAN * value and _fits(sweep, 2 * largest):
        seconds = _seconds(process, one, 2 * largest)
        if seconds is None:
            return
        largest *= 2
        last = largest
        if seconds > _LONGEST:
            break
    ratio = (last / value) ** (1 / (_POINTS - 1))
    one.values = sorted({round(value * ratio**i) for i in range(_POINTS)})


def _fits(sweep: Sweep, value: int) -> bool:
    return sweep.costs([value])[STEPS][0] < _MOST_BYTES


def _seconds(process: Process, one: Series, value: int) -> float | None:
    """Estimate the seconds of one call; None where the call cannot be made."""
    answer = process.ask({"do": "prepare", **one.sweep.request(value)}, _PATIENCE)
    one.skipped, one.fault = answer.get("skipped"), answer.get("error")
    return answer.get("seconds")


def _add(process: Process, one: Series, number: int, plan: Plan, tell: Callable[[str], object]) -> None:
    """Add one process's times: every size once in random order, several turns each."""
    tell(f"{one.sweep.name}: process {number + 1} of {plan.processes}")
    order = list(one.values)
    random.Random(number).shuffle(order)
    found: dict[int, list[float]] = {}
    copies: dict[int, float] = {}
    moved = dict(zip(one.values, one.sweep.costs(one.values).get(MOVED, []), strict=False))
    for i, value in enumerate(order):
        seconds = _seconds(process, one, value)
        if seconds is None or (i == 0 and _is_wrong(process, one, value)):
            return
        turn: dict[str, Any] = {"do": "turn", "workload": one.sweep.request(value)["workload"]}
        turn["repeats"] = min(1000, max(1, ceil(_TURN / seconds)))
        found[value] = [process.ask(turn, _PATIENCE)["seconds"] for _ in range(_TURNS)]
        if value in moved:
            copies[value] = process.ask({"do": "copy", "bytes": int(moved[value])}, _PATIENCE)["seconds"]
    if not _is_wrong(process, one, order[-1]):
        one.processes.append(found)
        if copies:
            one.copies.append(copies)


def _is_wrong(process: Process, one: Series, value: int) -> bool:
    """Return whether the target computes something else than what is timed; asked before and after the timing."""
    answer = process.ask({"do": "check", **one.sweep.request(value)}, _PATIENCE)
    one.fault = answer.get("wrong") or answer.get("error")
    return one.fault is not None


def too_fast(one: Series) -> tuple[int, float] | None:
    """Return the first size whose quickest time is below what its FLOPs need at the ceiling, with how far below."""
    flops = one.sweep.costs(one.values).get(FLOPS, [])
    for i, (value, work) in enumerate(zip(one.values, flops, strict=False)):
        seconds = min(times[i] for times in one.middles)
        if seconds < work / one.ceiling / _SLACK:
            return value, work / one.ceiling / seconds
    return None


_SLACK = 1.25
"""By how much the best product that was measured may fall short of the processor's best."""


MARGIN = 0.2
"""Distance outside the predicted band up to which an elasticity counts as equal to it."""
ERROR = 0.05
"""The probability that any verdict of a run is wrong."""
_FEWEST_POINTS = 4


def run(target: str, sweeps: Sequence[Sweep], plan: Plan) -> Benchmarks:
    """Measure, judge and show. Raises ArmError."""
    whole = begin()
    with Progress() as progress:
        found = ranked(judge(target, measure(target, sweeps, plan, progress.tell)))
    show(found, SIGNS, line, summary(found))
    return whole(scalings=found)


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
