"""Terminal output of a regression: what is slower first, as text or as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from veriformer.bench.regression.record import History, Regression
from veriformer.bench.statistics.blocks import Change

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
    counts = Counter(one.verdict for one in found)
    return ", ".join(f"{counts[v]} {v.value}" for v in _ORDER if counts[v]) or "nothing that both sides provide"


def changes(found: Iterable[History]) -> list[str]:
    """Return a line for each change of level in the history."""
    return [
        f"{one.workload}: {level.ratio:.3f} × since {one.when[level.start]} ({one.version[level.start]})"
        for one in found
        for level in one.levels
    ]


def markdown(found: Sequence[Regression]) -> str:
    """A table for the comment on a pull request."""
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
    """Seconds in the unit that fits."""
    scales = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))
    scale, unit = next(((s, u) for s, u in scales if seconds >= s), scales[-1])
    return f"{seconds / scale:.3g} {unit}"
