"""What a person sees while a run goes on, and when it has ended."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from veriformer.verify.results import VIOLATIONS, Result, Results, Status, Verdict

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


def console() -> Console:
    """Standard error: standard output stays free for what was asked for. Wide lines elsewhere than on a terminal."""
    return Console(
        stderr=True, highlight=False, emoji=False, width=None if sys.stderr.isatty() else 160, soft_wrap=True
    )


class Live:
    """Progress of a run: a bar on a terminal, plain lines elsewhere; violations are told at once on both."""

    def __init__(self, total: int, title: str) -> None:
        self.console = console()
        self.total = total
        self.title = title
        self.done = 0
        self.counts: Counter[Status] = Counter()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._bar = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self._task = self._bar.add_task(title, total=total, note="")

    def __enter__(self) -> Live:
        self._bar.start()
        if not self.console.is_terminal:
            self.console.print(f"{self.title}: {self.total} rows")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def tell(self, result: Result) -> None:
        """Count a finished row, and show it if it is a violation."""
        self.done += 1
        self.counts[result.status] += 1
        note = "  ".join(f"{status} {count}" for status, count in self.counts.items() if status is not Status.PASS)
        self._bar.update(self._task, completed=self.done, note=note)
        if result.status in VIOLATIONS or result.status is Status.HARNESS_ERROR:
            self.console.print(f"[{COLOURS[result.status]}]{result.status.upper():>9}[/] {escape(result.key)}")
        if not self.console.is_terminal and (self.done % 50 == 0 or self.done == self.total):
            self.console.print(f"{self.title}: {self.done}/{self.total}  {note}", markup=False)


def summarise(results: Results, out: Console) -> None:
    """The verdict, per operation, with every violation and what to do about it."""
    absent, provided = _provided(results)
    if provided:
        out.print(_table(provided))
        _not_judged(absent, provided, out)
    _meant(results, out)
    for result in results.violations:
        _explain(result, out)
    for result in results.results:
        if result.status is Status.HARNESS_ERROR:
            out.print(f"[bold magenta]HARNESS ERROR[/] {escape(result.key)}\n{escape(str(result.message))}")
    _suggest(results, out)
    _advise(results, out)
    for operation, changed in results.global_state.items():
        out.print(f"[bold red]CHANGES GLOBAL STATE[/] {escape(operation)}: {escape(', '.join(changed))}")
    out.print(verdict(results))


def _advise(results: Results, out: Console) -> None:
    """One line of the lesser requirements that are not met."""
    names = dict.fromkeys(result.requirement for result in results.advice)
    if names:
        rows = f"{len(results.advice)} row{'s' * (len(results.advice) > 1)}"
        out.print(f"\n[yellow]advice[/] ({rows}; --strict makes it a violation): {', '.join(names)}")


def _suggest(results: Results, out: Console) -> None:
    """The claims under which violations would be none, if they are meant."""
    found = Counter(tuple(result.suggestion.values()) for result in results.results if result.suggestion)
    for (convention, value), count in found.items():
        rows = f"{count} row{'s' * (count > 1)} that failed would hold"
        claim = f'CLAIMS = {{"conventions": {{"{convention}": "{value}"}}}}'
        out.print(f"\n[yellow]suggestion[/] {rows} under {escape(claim)}: claim it if it is what you mean")


def verdict(results: Results) -> str:
    """The run in one sentence."""
    name = results.implementation["target"]
    counts = ", ".join(f"{count} {status}" for status, count in results.summary.items())
    if len(results.results) != results.planned:
        head = f"[bold magenta]INVALID[/] {name}: {len(results.results)} of {results.planned} planned rows ran"
    elif not results.valid:
        head = f"[bold magenta]INVALID[/] {name}: the suite itself made an error"
    elif results.verdict is Verdict.VIOLATED:
        head = f"[bold red]VIOLATED[/] {name}: {len(results.violations)} of {results.planned} rows"
    elif results.verdict is Verdict.INCONCLUSIVE:
        head = f"[bold yellow]INCONCLUSIVE[/] {name}: {'; '.join(results.gaps)}"
    else:
        head = f"[bold green]HOLDS[/] {name}: {results.planned} rows"
    return f"{head} ({counts}; profile {results.profile}, seed {results.seed}, {results.duration_s:.1f} s)"


def _provided(results: Results) -> tuple[list[str], list[Result]]:
    """The operations that the target has nothing of, and the rows of all others."""
    has = {row.operation for row in results.results if row.status is not Status.NOT_PROVIDED}
    absent = dict.fromkeys(row.operation for row in results.results if row.operation not in has)
    return list(absent), [row for row in results.results if row.operation in has]


def _not_judged(absent: Sequence[str], provided: Sequence[Result], out: Console) -> None:
    """What was not judged because it is not there: whole operations, and arguments that a signature leaves out."""
    missing = Counter(row.message for row in provided if row.status is Status.NOT_PROVIDED)
    for message, count in missing.items():
        out.print(f"not judged: {message} ({count} row{'s' * (count > 1)})", style="dim", markup=False)
    if absent:
        out.print(f"not provided: {', '.join(absent)}", style="dim", markup=False)


def _meant(results: Results, out: Console) -> None:
    """Names of the target's own that come close to those of the contract."""
    for message in dict.fromkeys(str(row.message) for row in results.results if "did you mean" in str(row.message)):
        out.print(f"[yellow]not found[/] {escape(message)}")


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
    out.print(f"  {result.message}", markup=False)
    if result.bug_class:
        out.print(f"  bug class: {result.bug_class}", markup=False)
    if result.counterexample:
        for name, value in result.counterexample.arguments.items():
            out.print(f"  {name} = {_short(value)}", markup=False)
        if result.counterexample.script:
            out.print(
                "  the whole of it: counterexample.script in the JSON (--json FILE) or the report (--html FILE)",
                style="dim",
            )


def _equations(numbers: Sequence[str]) -> str:
    return f"  [dim]equation{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}[/]" if numbers else ""


def _short(value: Any, limit: int = 200) -> str:
    text = f"{value['values']}  ({value['dtype']}, shape {value['shape']})" if _is_tensor(value) else repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _is_tensor(value: object) -> bool:
    return isinstance(value, dict) and {"dtype", "shape", "values"} <= value.keys()
