"""Changes between two runs as a person reads them in a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console

from veriformer.reports.diff import HEADINGS, Change, Sort
from veriformer.reports.finding_changes import FINDING_HEADINGS, FindingChange, FindingSort
from veriformer.verify.presentation.clean import clean

_STYLES = {Sort.NEWLY_FAILING: "bold red", Sort.LOST: "bold red", Sort.NEWLY_PASSING: "green", Sort.OTHER: "yellow"}
_FINDING_STYLES = {FindingSort.NEW: "bold red", FindingSort.CHANGED: "yellow", FindingSort.GONE: "green"}
_LINE = 600


def show_changes(
    findings: Sequence[FindingChange], rows: Sequence[Change], caveats: Sequence[str], out: TextIO
) -> None:
    """First what cannot be relied on, then findings, then rows, each by what it means and the worst first."""
    console = Console(file=out, highlight=False, emoji=False, width=None if out.isatty() else 10_000)
    for caveat in caveats:
        _line(console, caveat, "bold magenta")
    for kind, heading in FINDING_HEADINGS.items():
        _group(console, heading, _FINDING_STYLES[kind], [change for change in findings if change.sort is kind])
    for sort, heading in HEADINGS.items():
        _group(console, heading, _STYLES[sort], [change for change in rows if change.sort is sort])
    if not findings and not rows:
        _line(console, "no finding came or went, and no row changed its status")


def _group(console: Console, heading: str, style: str, members: Sequence[object]) -> None:
    if members:
        _line(console, f"{heading} ({len(members)})", style)
    for change in members:
        _line(console, f"  {clean(change)[:_LINE]}".replace("\n", " "))


def _line(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
