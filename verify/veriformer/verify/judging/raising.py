"""What a target raised, and where in its own code."""

from __future__ import annotations

import linecache
import sysconfig
import traceback
from pathlib import Path

from veriformer.verify.results.foreign import message_of

_IN = "\nin "
"""What stands before the place, on a line of its own: what is said of the exception is compared without it."""

_OF_OTHERS = tuple(
    {f"{Path(__file__).parents[1]}/", *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "purelib", "platlib"))}
)
"""Folders of this suite, of Python and of installed packages: where their lines are is nothing to the author."""

_LONGEST = 100


def told(error: BaseException) -> str:
    """Return the exception's class and message, and after it the line of the author's that it was raised in."""
    said, place = message_of(error), _place(error)
    return f"{said}{_IN}{place}" if place else said


def place_in(message: str) -> tuple[str, str] | None:
    """Return the place that a message tells of, as ``mine.py:12``, and the code in that line; None without one."""
    place, _, code = message.rpartition(_IN)[2].partition(": ") if _IN in message else ("", "", "")
    return (place, code) if place else None


def code_of(error: BaseException) -> str | None:
    """Return the line of the author's that an exception was raised in; None where there is none."""
    return (_place(error) or "").partition(": ")[2] or None


def _place(error: BaseException) -> str | None:
    """Return the innermost place in files that are neither ours nor installed, with its code."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        code = linecache.getline(file, line).strip()
        if code and not file.startswith(_OF_OTHERS):
            return f"{Path(file).name}:{line}: {code[:_LONGEST]}"
    return None
