"""Suggestions for words that are not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

MOST = 5
"""Maximum number of listed names."""

_SUGGESTED = 3


def close(word: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are spelled most like a word, the closest first; none where none is."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[found] for found in difflib.get_close_matches(word.lower(), by_lower, _SUGGESTED)]


def meant(word: str, known: Iterable[str]) -> str:
    """Return a remark on an unknown word: what may have been meant; empty where nothing comes close."""
    found = close(word, known)
    return f" (did you mean {' or '.join(map(repr, found))}?)" if found else ""


def some(known: Iterable[str]) -> str:
    """Return names as a list of at most five, with the number of those left out."""
    names = list(dict.fromkeys(known))
    shown = ", ".join(names[:MOST])
    return f"{shown}, … ({len(names)} in all)" if len(names) > MOST else shown


def files_beside(place: str, pattern: str = "*.py") -> list[str]:
    """Return the files in the folder of one that is not there."""
    try:
        return [str(file) for file in sorted(Path(place).parent.glob(pattern)) if file.is_file()]
    except (OSError, ValueError):
        return []
