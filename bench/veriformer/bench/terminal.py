"""Terminal output of the counts: a table on a terminal, one line per count elsewhere; progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TextIO

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from veriformer.bench.document import Count, Expression
from veriformer.bench.verdicts import SIGNS, Verdict, tally

_HEADINGS = {"equal": "equal as polynomials", "growth": "of the degree in n that is predicted"}


def console(out: TextIO) -> Console:
    """Return a console for plain text, whose lines are broken on a terminal alone."""
    return Console(file=out, highlight=False, emoji=False, width=None if out.isatty() else 10_000)


class Progress:
    """Status line on standard error, or nothing where that is no terminal. Use as a context."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.console = Console(file=file or sys.stderr, highlight=False, emoji=False)
        self._status = Status("", console=self.console) if self.console.is_terminal else None

    def __enter__(self) -> Self:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._status:
            self._status.stop()

    def tell(self, what: str) -> bool:
        """Show what is being measured; return whether there is a terminal for it."""
        if self._status:
            self._status.update(what)
        return self._status is not None


def show(found: Iterable[Any], signs: Mapping[Any, tuple[str, str]], line: Callable[[Any], str], sums: str) -> None:
    """Print a line for each record after the sign of its verdict, and the sums."""
    out = console(sys.stdout)
    for one in found:
        sign, style = signs[one.verdict]
        out.print(Text(sign, style=style), line(one), markup=False, soft_wrap=True)
    out.print(sums, markup=False)


class Show(Progress):
    """Shows counts as they come. Use as a context."""

    def __init__(self, out: TextIO, progress: TextIO) -> None:
        super().__init__(progress)
        self._out, self._target = console(out), ""

    def progress(self, done: int, whole: int) -> None:
        """Say how far it is."""
        self.tell(f"counted {done} of {whole} operations")

    def one(self, count: Count) -> Count:
        """Show one count, where there is no terminal to hold a table of all."""
        if not self._out.is_terminal:
            self._out.print(line(count), markup=False, soft_wrap=True)
        return count

    def tell_operation(self, counts: Sequence[Count], *, every: bool = False) -> Sequence[Count]:
        """Show all counts of one operation in one line, or in one line each."""
        if every:
            return [self.one(count) for count in counts]
        if counts[0].target != self._target:
            self._target = counts[0].target
            self._out.print(self._target, style="bold", markup=False)
        sign, style = SIGNS[verdict(counts)]
        self._out.print(Text(f"{sign} {verdict(counts).value:<13}", style=style), end=" ", soft_wrap=True)
        self._out.print(f"{counts[0].operation}: {in_words(counts)}", markup=False, soft_wrap=True)
        return counts

    def summarise(self, counts: Sequence[Count]) -> None:
        """Print the table on a terminal, and the sums."""
        if self._out.is_terminal:
            self._out.print(table(counts))
        self._out.print(", ".join(tally(counts, Verdict)) or "nothing counted", markup=False)


def line(count: Count) -> str:
    """Format one count as one line."""
    head = f"{count.verdict.value:<13}  {count.target}  {count.quantity}, {count.case}, {count.passes}: "
    return head + "; ".join(found(count))


def found(count: Count) -> list[str]:
    """Return the count, the prediction, and the reason why they may differ."""
    parts = [f"counted {count.measured.text}"] if count.measured else []
    if count.claim and count.verdict is not Verdict.CONFIRMED:
        parts.append(f"predicted {count.claim.text}")
    if count.verdict is Verdict.CONFIRMED and count.claim:
        parts.append(f"{_HEADINGS[count.claim.kind]} ({count.points} calls)")
    if count.witness:
        point = ", ".join(f"{name} = {value}" for name, value in count.witness.point.items())
        parts.append(f"at {point}: counted {count.witness.counted}, predicted {count.witness.claimed}")
    return parts + ([count.reason] if count.reason else [])


def verdict(counts: Sequence[Count]) -> Verdict:
    """Return the verdict on an operation: the worst of its counts."""
    found = {count.verdict for count in counts}
    order = (Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.CONFIRMED, Verdict.NOT_COUNTABLE)
    return next((one for one in order if one in found), Verdict.COUNTED)


def in_words(counts: Sequence[Count]) -> str:
    """Describe faults and unknowns, each once for all counts that share it; where nothing is wrong, first the cost of
    the forward pass.
    """
    parts = []
    if verdict(counts) is not Verdict.REFUTED:
        sure = [count for count in counts if count.verdict in _SURE]
        inside = sorted({name for count in counts for name in count.modelled})
        parts = [_said([count]) for count in sure if count.passes == "forward" and count.quantity in _SHOWN]
        parts += [f"inside of {', '.join(inside)} modelled"] if inside else []
    doubtful: dict[tuple[Verdict, str | None, Expression | None], list[Count]] = {}
    for count in counts:
        if count.verdict not in _SURE:
            doubtful.setdefault((count.verdict, count.reason, count.measured), []).append(count)
    several = bool(parts) or len({one for one, *_ in doubtful}) > 1
    for (one, *_), alike in doubtful.items():
        parts.append(f"{one.value}: {_said(alike)}" if several else _said(alike))
    return "; ".join(parts)


_SURE = (Verdict.CONFIRMED, Verdict.COUNTED)
_SHOWN = ("FLOPs", "bytes moved", "peak extra bytes", "kept bytes")


def _said(alike: Sequence[Count]) -> str:
    """Return the line of counts of an operation with a common statement."""
    count = alike[0]
    value = f" {count.measured.text}" if count.measured else ""
    equal = count.verdict is Verdict.CONFIRMED and count.claim is not None and count.claim.kind == "equal"
    why = count.reason or ("as the formula" if equal else "")
    return f"{_places(alike)}:{value}{f' ({why})' if value and why else f' {why}'}".rstrip()


def _places(alike: Sequence[Count]) -> str:
    """Return the counted quantities with their calls: quantities of the same calls stand together."""
    found: dict[str, list[str]] = {}
    for count in alike:
        calls = ", ".join([count.case, *([count.passes] if count.passes != "forward" else [])])
        found.setdefault(calls, []).append(count.quantity)
    if len({tuple(quantities) for quantities in found.values()}) == 1:
        return f"{' and '.join(next(iter(found.values())))}, {'; '.join(found)}"
    return "; ".join(f"{' and '.join(quantities)}, {calls}" for calls, quantities in found.items())


def table(counts: Sequence[Count]) -> Table:
    """Return all counts for a terminal."""
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("", "target", "what", "calls", "passes", "found"):
        shown.add_column(heading, overflow="fold")
    for count in counts:
        sign, style = SIGNS[count.verdict]
        mark = Text(f"{sign} {count.verdict.value}", style=style)
        shown.add_row(mark, count.target, count.quantity, count.case, count.passes, Text("\n".join(found(count))))
    return shown
