"""Shares of tries with the interval that holds them: Clopper and Pearson, 95 %."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True)
class Share:
    """Number of events in a number of tries."""

    count: int
    tries: int

    @property
    def interval(self) -> tuple[float, float]:
        """Where the probability lies, at 95 %."""
        if not self.tries:
            return 0.0, 1.0
        found = stats.binomtest(self.count, self.tries).proportion_ci(0.95, "exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count} of {self.tries} (95 %: {low:.1%} to {high:.1%})"
