"""Timings: scaling of operations, regressions, and the power of that gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from veriformer.bench.document import Benchmarks, Tries
from veriformer.bench.regression.record import History, Regression
from veriformer.bench.regression.terminal import duration
from veriformer.bench.regression.terminal import ranked as slower_first
from veriformer.bench.scaling.record import Scaling
from veriformer.bench.scaling.terminal import ranked as refuted_first
from veriformer.bench.statistics.blocks import Change
from veriformer.reports import charts
from veriformer.reports.costs import LOOKS

_CHANGES = {
    Change.SLOWER: ("✗", "slower", "bad"),
    Change.FASTER: ("✓", "faster", "good"),
    Change.SAME: ("✓", "same", "good"),
    Change.AMBIGUOUS: ("?", "ambiguous", "warn"),
    Change.INVALID: ("–", "invalid", "muted"),
}


@dataclass(frozen=True)
class ScalingRow:
    """A size of an operation, ready to be shown."""

    scaling: Scaling

    @property
    def look(self) -> tuple[str, str, str]:
        """Sign, word and colour of its verdict."""
        return LOOKS[self.scaling.verdict]

    @property
    def chart(self) -> Markup | None:
        """Seconds over the size."""
        return charts.growth(self.scaling)


@dataclass(frozen=True)
class RegressionRow:
    """A workload of two versions, ready to be shown."""

    regression: Regression

    @property
    def look(self) -> tuple[str, str, str]:
        """Sign, word and colour of its verdict."""
        return _CHANGES[self.regression.verdict]

    @property
    def times(self) -> str:
        """The medians."""
        return ", ".join(f"{arm} {duration(seconds)}" for arm, seconds in self.regression.seconds.items())


@dataclass(frozen=True)
class HistoryRow:
    """The times of one workload over many versions, ready to be shown."""

    history: History

    @property
    def changes(self) -> list[str]:
        """Where they changed, in words; the latest first."""
        words = {True: "slower", False: "faster"}
        return [
            f"{abs(level.ratio - 1):.0%} {words[level.ratio > 1]} since {self.history.version[level.start]}, "
            f"{self.history.when[level.start]}"
            for level in reversed(self.history.levels)
        ]

    @property
    def latest(self) -> str:
        """The time of the last run."""
        return duration(self.history.seconds[-1])

    @property
    def chart(self) -> Markup | None:
        """Seconds over the runs, with their levels."""
        return charts.levels(self.history)


@dataclass(frozen=True)
class Timings:
    """All that was timed."""

    scalings: Sequence[ScalingRow]
    regressions: Sequence[RegressionRow]
    histories: Sequence[HistoryRow]
    false_alarms: Sequence[Tries]
    found: Sequence[Tries]


def timings(benchmarks: Benchmarks | None) -> Timings | None:
    """Return the timings, failures first; None where nothing was timed."""
    if benchmarks is None or not (
        benchmarks.scalings or benchmarks.regressions or benchmarks.histories or benchmarks.gate
    ):
        return None
    return Timings(
        [ScalingRow(one) for one in refuted_first(benchmarks.scalings)],
        [RegressionRow(one) for one in slower_first(benchmarks.regressions)],
        [HistoryRow(one) for one in sorted(benchmarks.histories, key=lambda one: -len(one.levels))],
        benchmarks.gate.false_alarms if benchmarks.gate else [],
        benchmarks.gate.found if benchmarks.gate else [],
    )
