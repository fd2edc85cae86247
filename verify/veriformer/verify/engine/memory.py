"""Memory that rows have left behind."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
from pathlib import Path

_STATISTICS = Path("/proc/self/statm")

_GROWN = 2**28
"""Bytes that the process has to have grown by: collecting takes seconds where there is much to see."""

_left = 0


def give_back() -> None:
    """Where the process has grown: collect what only cycles hold, and return to the system what the C library keeps.

    A row that fails may leave hundreds of megabytes: the frames of its errors, and the pages between what stays, which
    glibc does not return by itself. Where the system does not tell how large the process is, nothing is done.
    """
    global _left
    now = resident()
    _left = min(_left, now)
    if now - _left < _GROWN:
        return
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
    _left = resident()


def resident() -> int:
    """Bytes of this process that are in memory; 0 where nothing tells."""
    try:
        return int(_STATISTICS.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0
