"""The end of a run after so many rows that failed."""

from __future__ import annotations

from collections.abc import Callable

from veriformer.verify.engine.last_failed import failed
from veriformer.verify.results import Result


class Limit:
    """Interrupts a run, as a person would, once so many rows have failed; 0 for never. reason: why it did."""

    def __init__(self, most: int, tell: Callable[[Result], None]) -> None:
        self._most = most
        self._tell = tell
        self._failed = 0
        self.reason: str | None = None

    def tell(self, result: Result) -> None:
        """Tell of a row, and interrupt the run where it was the last that may fail."""
        self._tell(result)
        self._failed += failed(result)
        if self._most and self._failed >= self._most and self.reason is None:
            rows = "row" if self._failed == 1 else "rows"
            self.reason = f"stopped after {self._failed} {rows} that failed"
            raise KeyboardInterrupt
