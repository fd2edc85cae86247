"""Numbers as a reader wants them: short in tables, whole where they are evidence."""

from __future__ import annotations

from typing import Any


def short(value: float | None) -> str:
    """Two significant digits, without trailing noise."""
    if value is None:
        return "–"
    return f"{value:.2g}" if value == value and abs(value) < 1000 else f"{value:.3g}"


def exact(value: Any) -> str:
    """A number as it was recorded: the shortest text that reads back the same."""
    return value if isinstance(value, str) else repr(value)
