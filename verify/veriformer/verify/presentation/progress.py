"""Progress of a run on a terminal, and its rows when it has ended."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from veriformer.verify.results import VIOLATIONS, Result, Results, Status
from veriformer.verify.results.evidence import is_tensor
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import clean, one_line
from veriformer.verify.results.words import facts, title

COLOURS = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.ADVICE: "yellow",
    Status.DEVIATION: "cyan",
    Status.KNOWN_FAIL: "yellow",
    Status.UNEXPECTED_PASS: "bold red",
    Status.NOT_PROVIDED: "dim",
    Status.NOT_APPLICABLE: "dim",
    Status.BLOCKED: "yellow",
    Status.VACUOUS: "yellow",
    Status.TIMEOUT: "bold red",
    Status.CRASH: "bold red",
    Status.HARNESS_ERROR: "bold magenta",
}

MESSAGE, ARGUMENT, TRACE, AT_ONCE = 2000, 200, 20_000, 140
"""Characters of a row's message, of an argument's values and of a traceback that are shown; of a row told at once."""


def console() -> Console:
    """Return a console on standard error, which leaves standard output to results; lines are wide where it is no
    terminal.
    """
    return Console(
        stderr=True, highlight=False, emoji=False, width=None if sys.stderr.isatty() else 160, soft_wrap=True
    )


_EVERY = 10.0
"""Seconds between two lines of progress where there is no terminal."""


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show an activity that cannot be counted: a spinner on a terminal, elsewhere a line."""
    out = console()
    if out.is_terminal:
        with out.status(escape(one_line(what, 120))):
            yield
    else:
        out.print(one_line(what, 120), markup=False)
        yield


_AT_ONCE = ("where", "call", "result", "change")
"""Facts of a finding that are told at once."""

TOLD_AT_ONCE = 10
"""Failing rows that are told of while the run goes on; further ones are counted."""


class Live:
    """Progress of a run: a bar on a terminal, elsewhere a line now and then, with the rows counted by what became of
    them. The first rows that fail are told of at once.

    rows: tell of every such row. lacking: operations that the target does not provide; their rows are not waited for.
    """

    def __init__(self, pending: Sequence[str], title: str, *, rows: bool = False, lacking: Container[str] = ()) -> None:
        self.console = console()
        self.lacking = lacking
        self.total = total = sum(operation not in lacking for operation in pending)
        self.besides = len(pending) - total
        self.title = one_line(title, 80)
        self.rows = rows
        self.done = 0
        self.counts: Counter[Status] = Counter()
        self.failed = 0
        self._said = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._bar = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self._task = self._bar.add_task(escape(self.title), total=total, note="")

    def __enter__(self) -> Live:
        self._bar.start()
        if not self.console.is_terminal:
            besides = f"; {self.besides} are of operations that it does not provide" if self.besides else ""
            self.console.print(f"{self.title}: {self.total} rows{besides}", markup=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def tell(self, result: Result) -> None:
        """Count a finished row."""
        if result.operation in self.lacking:
            return
        self.done += 1
        self.counts[result.status] += 1
        note = "  ".join(f"{status} {count}" for status, count in self.counts.items() if status is not Status.PASS)
        self._bar.update(self._task, completed=self.done, note=note)
        if _grave(result):
            self.failed += 1
            self._tell_of(result)
        if self.console.is_terminal:
            return
        if self.done == self.total or time.monotonic() - self._said > _EVERY:
            self._said = time.monotonic()
            self.console.print(f"{self.title}: {self.done}/{self.total}  {note}", markup=False)

    def find(self, finding: Finding) -> None:
        """Tell a finding, with its call, as soon as it is there; the rows that are still to run may tell more of it."""
        self.console.print(f"[bold red]{'FINDING':>9}[/] {escape(title(finding))}")
        for label, text in facts(finding):
            if label in _AT_ONCE:
                self.console.print(f"{'':>9} [dim]{label:<7}[/] {escape(text)}")

    def _tell_of(self, result: Result) -> None:
        """Print one line for a failure, or that no further ones follow."""
        if self.rows or self.failed <= TOLD_AT_ONCE:
            said = escape(one_line(f"{result.key} {result.message or ''}", AT_ONCE))
            self.console.print(f"[{COLOURS[result.status]}]{result.status.upper():>9}[/] {said}")
        elif self.failed == TOLD_AT_ONCE + 1:
            self.console.print("          further rows that fail are counted; --rows shows each", markup=False)


def _grave(result: Result) -> bool:
    """Return whether this row alone says something against the target, or against the suite."""
    return result.status in VIOLATIONS or result.status is Status.HARNESS_ERROR


def show_rows(results: Results, out: Console) -> None:
    """Print every row: counts of statuses by operation, then each violation with its evidence."""
    has = {row.operation for row in results.results if row.status is not Status.NOT_PROVIDED}
    out.print(_table([row for row in results.results if row.operation in has]))
    for line in coverage(results.results):
        out.print(line, markup=False)
    for result in results.violations:
        _explain(result, out)
    for result in results.results:
        if result.status is Status.HARNESS_ERROR:
            out.print(f"[bold magenta]HARNESS ERROR[/] {escape(result.key)}", soft_wrap=True)
            out.print(clean(str(result.message)[:TRACE]), markup=False, soft_wrap=True)


def coverage(rows: Sequence[Result]) -> list[str]:
    """Return for each operation a line with the number of examples in which a given pair of sizes is large together."""
    lines = []
    for operation in dict.fromkeys(row.operation for row in rows):
        found: Counter[str] = Counter()
        for row in rows:
            found.update(row.covered or {} if row.operation == operation else {})
        pairs = [f"{what}: {n}" for what, n in found.most_common() if what.count(" > ") == 2]
        if pairs:
            lines.append(f"{operation}, examples with {', '.join(pairs)}")
    return lines


def _table(rows: Sequence[Result]) -> Table:
    shown = [status for status in Status if any(row.status is status for row in rows)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("operation")
    for status in shown:
        table.add_column(status.value, justify="right", style=COLOURS[status].removeprefix("bold "))
    table.add_column("worst ratio", justify="right")
    for operation in dict.fromkeys(row.operation for row in rows):
        of_it = [row for row in rows if row.operation == operation]
        counts = Counter(row.status for row in of_it)
        ratios = [row.worst_ratio for row in of_it if isinstance(row.worst_ratio, int | float)]
        worst = f"{max(ratios):.2g}" if ratios else "–"
        table.add_row(operation, *[str(counts[status] or "·") for status in shown], worst)
    return table


def _explain(result: Result, out: Console) -> None:
    out.print(f"\n[bold red]{result.status.upper()}[/] {escape(result.key)}{_equations(result.equations)}")
    out.print(f"  {clean(str(result.message)[:MESSAGE])}", markup=False, soft_wrap=True)
    if result.bug_class:
        out.print(f"  bug class: {result.bug_class}", markup=False)
    if result.counterexample:
        for name, value in result.counterexample.arguments.items():
            out.print(f"  {name} = {one_line(_value(value), ARGUMENT)}", markup=False)
        if result.counterexample.script:
            out.print(
                "  the whole of it: counterexample.script in the JSON (--json FILE) or the report (--html FILE)",
                style="dim",
            )


def _equations(numbers: Sequence[str]) -> str:
    return f"  [dim]equation{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}[/]" if numbers else ""


def _value(value: Any) -> str:
    return f"{value['values']}  ({value['dtype']}, shape {value['shape']})" if is_tensor(value) else repr(value)
