"""Requirement × target: one cell for all dtypes of a requirement on a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from veriformer.reports.formatting import short
from veriformer.reports.runs import Run
from veriformer.reports.statuses import STATUS_STYLES, StatusStyle, severity
from veriformer.reports.violations import anchor
from veriformer.verify.results import Result, Status


@dataclass(frozen=True)
class Cell:
    """The rows of one requirement on one run, one per dtype."""

    run: Run
    requirement: str
    rows: tuple[Result, ...]

    @property
    def parts(self) -> list[tuple[StatusStyle, list[str], float | None]]:
        """Each status met, the worst first: the dtypes it was met in, and the largest |got − exact| / bound in them."""
        met = sorted({row.status for row in self.rows}, key=severity)
        parts = [(STATUS_STYLES[status], [row for row in self.rows if row.status is status]) for status in met]
        return [(look, [row.dtype or "" for row in rows], _worst_ratio(rows)) for look, rows in parts]

    def anchor(self, status: Status) -> str:
        """Where on the page the evidence for that status is shown."""
        return anchor(self.run, next(row for row in self.rows if row.status is status))

    @property
    def blockers(self) -> list[str]:
        """The requirements that do not hold and on which blocked rows rest."""
        return list(dict.fromkeys(row.blocked_by for row in self.rows if row.blocked_by))

    @property
    def title(self) -> str:
        """Every dtype on a line of its own, for who hovers."""
        return "\n".join(_line(row) for row in self.rows)


@dataclass(frozen=True)
class MatrixRow:
    """One requirement on all runs; a cell is None where the run did not plan it."""

    requirement: str
    equations: tuple[str, ...]
    kind: str | None
    cells: tuple[Cell | None, ...]

    @property
    def law(self) -> str:
        """The requirement's name without its operation's."""
        return self.requirement.partition(".")[2] or self.requirement


@dataclass(frozen=True)
class Group:
    """The requirements on one operation."""

    operation: str
    rows: tuple[MatrixRow, ...]

    @property
    def provided(self) -> bool:
        """Whether any run has anything of the operation."""
        met = (row.status for line in self.rows for cell in line.cells if cell for row in cell.rows)
        return any(status is not Status.NOT_PROVIDED for status in met)

    @property
    def tallies(self) -> list[list[tuple[StatusStyle, int]]]:
        """Per run, how many rows of results ended in each status, worst first."""
        return [
            _tally([cell.rows for cell in cells if cell])
            for cells in zip(*(row.cells for row in self.rows), strict=True)
        ]


def matrix(runs: Sequence[Run]) -> list[Group]:
    """Every requirement met in any run, grouped by operation, in the order of the results."""
    rows = [
        {"operation": row.operation, "requirement": row.requirement, "run": run.label, "row": row}
        for run in runs
        for row in run.results.results
    ]
    if not rows:
        return []
    table = pd.DataFrame(rows)
    return [
        Group(
            str(operation), tuple(_row(str(name), met, runs) for name, met in part.groupby("requirement", sort=False))
        )
        for operation, part in table.groupby("operation", sort=False)
    ]


def _row(requirement: str, met: pd.DataFrame, runs: Sequence[Run]) -> MatrixRow:
    found = {str(label): tuple(part["row"]) for label, part in met.groupby("run", sort=False)}
    held = [Cell(run, requirement, found[run.label]) if run.label in found else None for run in runs]
    first: Result = met["row"].iloc[0]
    return MatrixRow(requirement, tuple(first.equations), first.kind, tuple(held))


def _tally(cells: Sequence[tuple[Result, ...]]) -> list[tuple[StatusStyle, int]]:
    counts = Counter(row.status for rows in cells for row in rows)
    return [(STATUS_STYLES[status], counts[status]) for status in sorted(counts, key=severity)]


def as_float(ratio: float | str | None) -> float | None:
    """A ratio as a number; the schema writes those that are not finite as text."""
    return None if ratio is None or ratio == "nan" else float(ratio)


def _worst_ratio(rows: Sequence[Result]) -> float | None:
    return max((found for row in rows if (found := as_float(row.worst_ratio)) is not None), default=None)


def _line(row: Result) -> str:
    parts = [
        f"{row.dtype or 'any dtype'} on {row.device}: {STATUS_STYLES[row.status].word}",
        f"{row.examples} examples",
    ]
    ratio = as_float(row.worst_ratio)
    parts += [f"worst ratio {short(ratio)}"] if ratio is not None else []
    parts += [f"{row.vacuous_share:.0%} of them vacuous"] if row.vacuous_share else []
    parts += [f"blocked by {row.blocked_by}"] if row.blocked_by else []
    return ", ".join(parts)
