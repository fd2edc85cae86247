"""CPU-time stopwatch for loaded machines."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

# The functions themselves, which a target may replace in their module.
from os import close, read
from os import open as opened
from time import monotonic, thread_time

STARVED = 0.1
"""The share of a processor above which a process that has not had its time was kept waiting and did not wait itself."""


def kept_waiting(process: int | None = None) -> float:
    """Return the seconds for which a process' main thread was runnable without a processor; 0 where unknown.

    process: its id; this one where there is none.
    """
    try:
        file = opened(f"/proc/{process or 'self'}/schedstat", os.O_RDONLY)  # at each call of a target: nothing slower
        try:
            return int(read(file, 100).split()[1]) / 1e9
        finally:
            close(file)
    except (OSError, ValueError, IndexError):
        return 0.0


@dataclass(frozen=True)
class Stopwatch:
    """Readings of three clocks when it was started, in seconds: the wall's, that of this thread on the processor, and
    what was waited. A whole process's clock takes a hundred times as long to read while its other threads run."""

    began: float = field(default_factory=lambda: monotonic())
    busy: float = field(default_factory=lambda: thread_time())
    waited: float = field(default_factory=lambda: kept_waiting())

    @property
    def running(self) -> float:
        """Seconds by the clock, but for those in which there was no processor."""
        return monotonic() - self.began - (kept_waiting() - self.waited)

    @property
    def spent(self) -> float:
        """The seconds that count: those on the processor for a thread that was kept waiting, and else all but what it
        waited for one, so that sleeping counts."""
        used, passed = thread_time() - self.busy, monotonic() - self.began
        return used if used > STARVED * passed else max(used, self.running)
