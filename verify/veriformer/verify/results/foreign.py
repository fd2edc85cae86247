"""Foreign texts and data as plain ones that are fit to be shown.

An exception of a target's own class may refuse even that. No text that is shown has
control characters of a terminal, and long ones are cut.
"""

from __future__ import annotations

import linecache
import sysconfig
import traceback
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_OF_OTHERS = tuple(
    {f"{Path(__file__).parents[1]}/", *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "purelib", "platlib"))}
)
"""Folders of this suite, of Python and of installed packages: where their lines are is nothing to the author."""

_LONGEST = 100

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that do something instead of being seen: control, format (direction), surrogates."""


def message_of(error: BaseException) -> str:
    """Return an exception as one string, its class first; the class alone where its message cannot be read."""
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


def exception_text(error: BaseException) -> str:
    """Return the exception in one string, with the place in the author's own code where it came from."""
    place = place_of(error)
    return f"{message_of(error)} ({place})" if place else message_of(error)


def place_of(error: BaseException) -> str | None:
    """Return the innermost place in files that are neither ours nor installed, with its code."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        code = linecache.getline(file, line).strip()
        if code and not file.startswith(_OF_OTHERS):
            return f"{Path(file).name}:{line}: {code[:_LONGEST]}"
    return None


def text_of(value: object) -> str:
    """Return an object's text; its class where ``str`` raises."""
    try:
        return "".join(("", str(value)))
    except Exception:
        return f"<{type.__getattribute__(type(value), '__name__')}>"


DEPTH = 6
"""Depth to which plain data may be nested."""


def plain(value: object, depth: int = DEPTH) -> Any:
    """Convert a target's own data to strings, numbers, lists and dicts, nested to at most depth levels."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth:
        return {text_of(key): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return [plain(item, depth - 1) for item in value]
    return f"<{type(value).__name__}>" if isinstance(value, Mapping | list | tuple) else text_of(value)


def writable(text: str) -> str:
    """Return text that UTF-8 can encode: lone surrogates become escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def clean(text: object) -> str:
    """Escape every control character; line ends stay."""
    return "".join(_escaped(character) for character in str(text).replace("\r\n", "\n"))


def one_line(text: object, limit: int) -> str:
    """Return text on one line, clean, at most limit characters long."""
    words = " ".join(clean(str(text)[: 20 * limit]).split())
    return words if len(words) <= limit else f"{words[: limit - 1].rstrip()}…"


def last_line(text: object) -> str:
    """Return the last line of a text, which of a traceback names the exception."""
    return str(text).strip().rpartition("\n")[2]


def _escaped(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _STEERING:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(count: int, noun: str) -> str:
    """Return ``1 row``, ``2 rows``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def named(names: Sequence[str], most: int) -> str:
    """Return names as a person lists them, those above so many only counted."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
