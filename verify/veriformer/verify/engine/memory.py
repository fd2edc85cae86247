"""Memory that a row has left behind."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys


def give_back() -> None:
    """Collect what only cycles hold, and return to the system what the C library keeps for later, where it can.

    A row that fails leaves hundreds of megabytes: the frames of its errors, and the pages between what stays that glibc
    does not return by itself.
    """
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # another C library has no such function
            ctypes.CDLL(None).malloc_trim(0)
