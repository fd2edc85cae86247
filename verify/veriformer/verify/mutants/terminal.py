"""The kill matrix as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from veriformer.verify.mutants import Mutant
from veriformer.verify.mutants.cell import Cell
from veriformer.verify.mutants.generic import GenericMutant, survivors
from veriformer.verify.mutants.matrix import KillMatrix


class LiveMatrix:
    """Progress over the members: a bar on a terminal, a line for every tenth member elsewhere."""

    def __init__(self, total: int, console: Console) -> None:
        self.console = console
        self.total = total
        self.done = 0
        columns = (
            TextColumn("kill matrix"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> LiveMatrix:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def tell(self, name: str, cells: Sequence[Cell]) -> None:
        """Count a member that has been run."""
        self.done += 1
        self._bar.update(self._task, completed=self.done, description=name)
        if not self.console.is_terminal and (self.done % 10 == 0 or self.done == self.total):
            self.console.print(f"kill matrix: {self.done}/{self.total}")


def show(matrix: KillMatrix, out: Console) -> None:
    """Print the kills with their numbers of examples; then survivors, false alarms and escapes, each by name."""
    if matrix.mutants:
        out.print(_kills(matrix))
        out.print(_by_requirement(matrix))
    if matrix.generic:
        out.print(_by_operator(matrix))
    for title, rows in (
        ("SURVIVORS", [f"{mutant.identifier}  {mutant.title}" for mutant in matrix.survivors]),
        ("GENERIC SURVIVORS", [_survivor(mutant) for mutant in matrix.generic_survivors]),
        ("LISTED AS SURVIVORS, BUT KILLED: REMOVE THE REASON", [mutant.identifier for mutant in matrix.outdated]),
        ("SCRIPTS THAT REPRODUCE NOTHING", [_place(cell) for cell in matrix.unreproduced]),
        ("FALSE ALARMS", [_place(cell) for cell in matrix.false_alarms]),
        ("ESCAPED SABOTAGE", [_place(cell) for cell in matrix.escapes]),
        ("HARNESS ERRORS", [_place(cell) for cell in matrix.errors]),
    ):
        if rows:
            out.print(f"\n[bold red]{title}[/]")
            out.print("\n".join(rows), markup=False)
    out.print("\n" + sentence(matrix))


def sentence(matrix: KillMatrix) -> str:
    """Return the matrix in one sentence."""
    summary = matrix.to_dict()["summary"]
    killers = [killer for mutant in matrix.mutants if (killer := matrix.first_killer(mutant)) is not None]
    examples = sorted(killer.examples for killer in killers)
    median = f", median {examples[len(examples) // 2]} examples to the first kill" if examples else ""
    if matrix.generic:
        killed = len(matrix.generic) - len(matrix.generic_survivors)
        return (
            f"{killed} of {len(matrix.generic)} generic mutants killed ({killed / len(matrix.generic):.1%}); "
            f"{len(matrix.unexplained)} survivors that nobody has looked at (seed {matrix.seed})"
        )
    return (
        f"{summary['killed']} of {summary['mutants']} mutants killed{median}{_sizes(matrix)}; "
        f"{summary['false_alarms']} false alarms over {summary['variants']} correct variants; "
        f"{summary['escapes']} escapes of {summary['sabotages']} sabotage adapters (seed {matrix.seed})"
    )


def _sizes(matrix: KillMatrix) -> str:
    sizes = [cell.scalars for cell in matrix.counterexamples]
    if not sizes:
        return ""
    scripts = f"{len(sizes) - len(matrix.unreproduced)} of {len(sizes)} scripts reproduce them"
    return f"; smallest counterexamples of {sizes[len(sizes) // 2]} numbers (median), at most {sizes[-1]}; {scripts}"


def _kills(matrix: KillMatrix) -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", title="killed by (examples to the kill)", title_justify="left"
    )
    for column in ("mutant", "fault", "killed by"):
        table.add_column(column, overflow="fold")
    for mutant in matrix.mutants:
        table.add_row(mutant.identifier, mutant.title, _killers(matrix, mutant))
    return table


def _killers(matrix: KillMatrix, mutant: Mutant) -> str:
    killed = sorted((cell for cell in matrix.of(mutant) if cell.killed), key=lambda cell: cell.examples)
    words = [f"{cell.requirement} {cell.dtype} ({cell.examples})" for cell in killed]
    return ", ".join(words) or "[bold red]survives[/]"


def _by_requirement(matrix: KillMatrix) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("requirement")
    table.add_column("mutants killed", justify="right")
    for requirement, count in sorted(matrix.kills("requirement").items(), key=lambda item: (-item[1], item[0])):
        table.add_row(requirement, str(count))
    return table


def _by_operator(matrix: KillMatrix) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title="generic mutants", title_justify="left")
    table.add_column("operator")
    for column in ("mutants", "killed"):
        table.add_column(column, justify="right")
    for operator, counts in matrix.to_dict()["generic"]["by_operator"].items():
        table.add_row(operator, str(counts["mutants"]), str(counts["killed"]))
    return table


def _survivor(mutant: GenericMutant) -> str:
    return f"{mutant.identifier}  ({mutant.title}): {survivors().get(mutant.identifier, 'nobody has looked at it')}"


def _place(cell: Cell) -> str:
    return f"{cell.family}:{cell.member}  {cell.requirement}[{cell.dtype}]  {cell.status}"
