"""Changes between two runs as a person reads them in a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console

from veriformer.reports.changes import HEADINGS, Change, Sort

_STYLES = {Sort.NEWLY_FAILING: "bold red", Sort.NEWLY_PASSING: "green", Sort.OTHER: "yellow"}


def show_changes(found: Sequence[Change], gaps: Sequence[str], out: TextIO) -> None:
    """The changes by what they mean, the worst first, and whether the new runs can be relied on."""
    console = Console(file=out, highlight=False, emoji=False, width=None if out.isatty() else 10_000)
    for gap in gaps:
        console.print(f"INVALID {gap}", style="bold magenta", markup=False, soft_wrap=True)
    for sort, heading in HEADINGS.items():
        members = [change for change in found if change.sort is sort]
        if members:
            console.print(f"{heading} ({len(members)})", style=_STYLES[sort], markup=False)
        for change in members:
            console.print(f"  {change}", markup=False, soft_wrap=True)
    if not found:
        console.print("no row changed its status", markup=False)
