"""Standard output and standard error, whatever they are encoded in."""

from __future__ import annotations

import io
import sys


def write_anything() -> None:
    """Let a character that the encoding of a stream lacks be written as its escape, and not end the run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
