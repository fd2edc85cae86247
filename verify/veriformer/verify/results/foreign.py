"""What a target says, as plain text: an exception of its own class may refuse even that."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NOT_THEIRS = (str(Path(__file__).parents[1]), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))


def message_of(error: BaseException) -> str:
    """The exception in one string, its class first; of one that cannot be told of, the class alone."""
    name = "".join(type.__getattribute__(type(error), "__name__"))
    try:
        said = "".join(("", str(error)))
    except KeyboardInterrupt as interruption:
        if type(interruption) is not KeyboardInterrupt:  # the person's own
            raise
        said = "its message cannot be told"
    except (Exception, SystemExit, GeneratorExit):
        said = "its message cannot be told"
    return f"{name}: {said}"


def raised(error: BaseException) -> str:
    """Return the exception in one string, with the place in the target's own code where it came from."""
    frame = _own_frame(error)
    if frame is None:
        return message_of(error)
    return f"{message_of(error)} ({_near(frame.filename)}:{frame.lineno}{': ' if frame.line else ''}{frame.line})"


def _own_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame that is neither ours, nor of the interpreter, nor of an installed library."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if not frame.filename.startswith(("<", *_NOT_THEIRS))), None)


def _near(file: str) -> str:
    """Return the path of a file, relative where it lies below the working directory."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def text_of(value: object) -> str:
    """What an object says of itself; of one that cannot, its class."""
    try:
        return "".join(("", str(value)))
    except Exception:
        return f"<{type.__getattribute__(type(value), '__name__')}>"


DEPTH = 6
"""How deep plain data may be nested."""


def plain(value: object, depth: int = DEPTH) -> Any:
    """Data of a target's own as strings, numbers, lists and dicts that end somewhere."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth:
        return {text_of(key): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return [plain(item, depth - 1) for item in value]
    return f"<{type(value).__name__}>" if isinstance(value, Mapping | list | tuple) else text_of(value)


def writable(text: str) -> str:
    """The text as UTF-8 can hold it: surrogates that stand alone are written as their escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
