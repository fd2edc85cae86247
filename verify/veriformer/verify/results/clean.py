"""Foreign text made fit to be shown: nothing in it can steer a terminal, and no more of it than there is room for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that do something instead of being seen: control, format (direction), surrogates."""


def clean(text: object) -> str:
    """The text with every character that steers instead of being seen written as its escape; line ends stay."""
    return "".join(_seen(character) for character in str(text).replace("\r\n", "\n"))


def one_line(text: object, limit: int) -> str:
    """The text on one line, clean, and at most so many characters long."""
    words = " ".join(clean(str(text)[: 20 * limit]).split())
    return words if len(words) <= limit else f"{words[: limit - 1].rstrip()}…"


def last_line(text: object) -> str:
    """Return the last line of a text, which of a traceback names the exception."""
    return str(text).strip().rpartition("\n")[2]


def _seen(character: str) -> str:
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
