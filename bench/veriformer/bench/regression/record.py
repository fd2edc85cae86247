"""Regression of one workload, as ``benchmarks.json`` keeps it and as text or Markdown, what is slower first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from veriformer.bench.regression.measure import Plan, Series
from veriformer.bench.statistics import Change
from veriformer.bench.verdicts import tally


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Regression of one workload between two arms.

    ratio: head / base. interval: what one-sided tests place it in; None where nothing was measured. seconds: the
    medians. turns: seconds of every turn, pair of processes by pair of processes.
    """

    workload: str
    base: str
    head: str
    verdict: Change
    reason: str
    ratio: float | None
    interval: list[float] | None
    seconds: dict[str, float]
    turns: dict[str, list[list[float]]]
    clock: str
    device: str
    fingerprint: str
    rejected: int = 0


@dataclass(frozen=True, kw_only=True)
class Level:
    """From this run of a history on, a workload takes `ratio` times as long as in the runs before."""

    start: int
    ratio: float


@dataclass(frozen=True, kw_only=True)
class History:
    """The times of one workload on one machine, oldest first, and where they settled on another level."""

    workload: str
    clock: str
    when: list[str]
    version: list[str]
    seconds: list[float]
    levels: list[Level]


def record(series: Series, base: str, head: str, plan: Plan, fingerprint: str) -> Regression:
    """Return the record of a series."""
    found = series.judgement(plan.floors)
    measured = found.change is not Change.INVALID
    turns = {"base": [list(b.base) for b in series.blocks], "head": [list(b.head) for b in series.blocks]}
    return Regression(
        workload=series.workload,
        base=base,
        head=head,
        verdict=found.change,
        reason=found.reason,
        ratio=found.ratio if measured else None,
        interval=[x for x in found.interval if isfinite(x)] if measured else None,
        seconds={arm: median(median(t) for t in blocks) for arm, blocks in turns.items() if blocks},
        turns=turns,
        clock=plan.clock,
        device=plan.device,
        fingerprint=fingerprint,
        rejected=series.rejected,
    )


_ORDER = (Change.SLOWER, Change.AMBIGUOUS, Change.INVALID, Change.FASTER, Change.SAME)
SIGNS = {
    Change.SLOWER: ("✗", "bold red"),
    Change.FASTER: ("✓", "green"),
    Change.SAME: ("✓", "green"),
    Change.AMBIGUOUS: ("?", "yellow"),
    Change.INVALID: ("–", "dim"),
}


def ranked(found: Iterable[Regression]) -> list[Regression]:
    """Sort the regressions: slower first, the largest change first within a verdict."""
    return sorted(found, key=lambda one: (_ORDER.index(one.verdict), -abs((one.ratio or 1) - 1)))


def line(one: Regression) -> str:
    """Format one workload as one line, after its verdict."""
    if one.ratio is None:
        return f"{one.verdict.value:<9} {one.workload}: {one.reason}"
    bounds = f" ({', '.join(f'{x:.3f}' for x in one.interval)})" if one.interval else ""
    times = ", ".join(f"{arm} {duration(seconds)}" for arm, seconds in one.seconds.items())
    return f"{one.verdict.value:<9} {one.workload}: {one.ratio:.3f}{bounds} × base; {one.reason}; {times}"


def summary(found: Sequence[Regression]) -> str:
    """Return the number of workloads by verdict, as text."""
    return ", ".join(tally(found, _ORDER)) or "nothing that both sides provide"


def changes(found: Iterable[History]) -> list[str]:
    """Return a line for each change of level in the history."""
    return [
        f"{one.workload}: {level.ratio:.3f} × since {one.when[level.start]} ({one.version[level.start]})"
        for one in found
        for level in one.levels
    ]


def markdown(found: Sequence[Regression]) -> str:
    """Return a table for the comment on a pull request."""
    rows = [
        f"| {SIGNS[one.verdict][0]} {one.verdict.value} | {one.workload} | {_ratio(one)} | {one.reason} |"
        for one in ranked(found)
        if one.verdict is not Change.SAME
    ]
    same = sum(one.verdict is Change.SAME for one in found)
    table = ["| verdict | workload | head / base | why |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"**{summary(found)}**", "", *table, "", f"{same} workloads are the same.", ""])


def _ratio(one: Regression) -> str:
    return "" if one.ratio is None else f"{one.ratio:.3f}"


def duration(seconds: float) -> str:
    """Return the seconds in the unit that fits."""
    scales = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))
    scale, unit = next(((s, u) for s, u in scales if seconds >= s), scales[-1])
    return f"{seconds / scale:.3g} {unit}"
