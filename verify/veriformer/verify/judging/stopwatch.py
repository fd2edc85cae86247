"""How long something takes that shares its processors with others."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, process_time  # the functions themselves, which a target may replace in their module

STARVED = 0.1
"""The share of a processor above which a process that has not had its time was kept waiting and did not wait itself."""

_PROCESSES = Path("/proc")


def kept_waiting(process: int | None = None) -> float:
    """Seconds for which the main thread of a process could run and had no processor; 0 where the system is silent.

    process: its id; this one where there is none.
    """
    try:
        return int((_PROCESSES / str(process or "self") / "schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


@dataclass(frozen=True)
class Stopwatch:
    """Readings of three clocks when it was started, in seconds: the wall's, the processor's, and what was waited."""

    began: float = field(default_factory=lambda: monotonic())
    busy: float = field(default_factory=lambda: process_time())
    waited: float = field(default_factory=lambda: kept_waiting())

    @property
    def running(self) -> float:
        """Seconds by the clock, but for those in which there was no processor."""
        return monotonic() - self.began - (kept_waiting() - self.waited)

    @property
    def spent(self) -> float:
        """The seconds that count: those of the processor for a process that was kept waiting, and else all but what it
        waited for one, so that sleeping counts."""
        used, passed = process_time() - self.busy, monotonic() - self.began
        return used if used > STARVED * passed else max(used, self.running)
