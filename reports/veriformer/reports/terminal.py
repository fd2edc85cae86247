"""Changes between two runs as a person reads them in a terminal or a log."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

from veriformer.reports.difference import BAD, GOOD, NOTHING, OTHER, Difference
from veriformer.verify.results.foreign import clean

_STYLES = {BAD: "bold red", GOOD: "green", OTHER: "yellow"}
_LINE = 600


def show_changes(found: Difference, out: TextIO) -> None:
    """Print what cannot be relied on, then findings, then rows, the worst first."""
    console = Console(file=out, highlight=False, emoji=False, width=None if out.isatty() else 10_000)
    for caveat in found.caveats:
        _line(console, caveat, "bold magenta")
    for section in found.sections():
        if section.changes:
            _line(console, section.title, _STYLES[section.tone])
        for change in section.changes:
            _line(console, f"  {clean(change)[:_LINE]}".replace("\n", " "))
    if not found.findings and not found.rows:
        _line(console, NOTHING)


def _line(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
