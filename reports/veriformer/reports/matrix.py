"""Requirement × target: one cell for all dtypes of a requirement on a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veriformer.reports.runs import Run
from veriformer.reports.statuses import STATUS_STYLES, StatusStyle, severity
from veriformer.verify.results import VIOLATIONS, Result, Status
from veriformer.verify.results.foreign import one_line

_REASON = 160
"""Characters of a message that a cell shows."""

_TOLD = frozenset({Status.ADVICE, Status.VACUOUS, Status.NOT_APPLICABLE})
"""Statuses whose message says why."""

FILTERS = {
    "violated": VIOLATIONS | {Status.HARNESS_ERROR},
    "known failures": frozenset({Status.KNOWN_FAIL}),
    "advice": frozenset({Status.ADVICE}),
    "not shown": frozenset({Status.BLOCKED, Status.VACUOUS}),
    "held": frozenset({Status.PASS, Status.DEVIATION}),
}
"""Choices of what the matrix shows, by the statuses of the operations that they leave."""

MOST_COLUMNS = 6
"""Runs up to which each has a column; of more, those are listed that tell more than that all holds."""


@dataclass(frozen=True)
class Cell:
    """The rows of one requirement on one run, one per dtype."""

    run: Run
    requirement: str
    rows: tuple[Result, ...]

    @property
    def parts(self) -> list[tuple[StatusStyle, list[str], float | None]]:
        """Return each status, the worst first, with its dtypes and the largest |got − exact| / bound in them."""
        met = sorted({row.status for row in self.rows}, key=severity)
        parts = [(STATUS_STYLES[status], [row for row in self.rows if row.status is status]) for status in met]
        return [
            (look, list(dict.fromkeys(row.dtype or "" for row in rows)), _worst_ratio(rows)) for look, rows in parts
        ]

    def first(self, status: Status) -> Result:
        """Return the first of its rows in a status."""
        return next(row for row in self.rows if row.status is status)

    @property
    def reasons(self) -> list[str]:
        """Return why rows show nothing, on one line each; of violations their finding tells."""
        told = [row for row in self.rows if row.status in _TOLD and row.message]
        return list(dict.fromkeys(one_line(row.message, _REASON) for row in told))

    @property
    def blockers(self) -> list[str]:
        """Return the requirements that do not hold and on which blocked rows rest."""
        return list(dict.fromkeys(row.blocked_by for row in self.rows if row.blocked_by))


@dataclass(frozen=True)
class MatrixRow:
    """A requirement on all runs; a cell is None where the run did not plan it."""

    requirement: str
    equations: tuple[str, ...]
    kind: str | None
    cells: tuple[Cell | None, ...]

    @property
    def statuses(self) -> set[Status]:
        """Return every status that a run met."""
        return {row.status for cell in self.cells if cell for row in cell.rows}

    @property
    def provided(self) -> bool:
        """Return whether any run provides it."""
        return self.statuses != {Status.NOT_PROVIDED}

    @property
    def worst(self) -> StatusStyle:
        """Return sign, word and colour of its worst status."""
        return STATUS_STYLES[min(self.statuses, key=severity)]

    @property
    def told(self) -> list[Cell]:
        """Return the cells that tell more than that all holds, for a table of very many runs."""
        return [cell for cell in self.cells if cell and not {row.status for row in cell.rows} <= FILTERS["held"]]

    @property
    def held(self) -> int:
        """Return the number of runs in which all of it holds."""
        return sum(cell is not None for cell in self.cells) - len(self.told)

    @property
    def law(self) -> str:
        """Return the requirement's name without its operation's."""
        return self.requirement.partition(".")[2] or self.requirement


@dataclass(frozen=True)
class Group:
    """The requirements on one operation."""

    operation: str
    rows: tuple[MatrixRow, ...]

    @property
    def provided(self) -> bool:
        """Return whether any run provides any of them."""
        return any(row.provided for row in self.rows)

    @property
    def asked(self) -> list[MatrixRow]:
        """Return the requirements that some run provides, the worst first."""
        return sorted((row for row in self.rows if row.provided), key=lambda row: min(map(severity, row.statuses)))

    @property
    def lacking(self) -> list[str]:
        """Return the requirements that no run provides."""
        return [row.law for row in self.rows if not row.provided]

    @property
    def worst(self) -> int:
        """Return the place of its worst status in the order of severity."""
        return min(severity(status) for row in self.rows for status in row.statuses)

    @property
    def kinds(self) -> set[str]:
        """Return the filters that show it."""
        return {kind for kind, statuses in FILTERS.items() for row in self.rows if row.statuses & statuses}

    @property
    def classes(self) -> str:
        """Return the filters that show it as classes of the style sheet."""
        return " ".join(f"has-{kind.replace(' ', '-')}" for kind in FILTERS if kind in self.kinds)

    @property
    def tally(self) -> list[tuple[StatusStyle, int]]:
        """Return the number of rows in each status in all runs together, the worst first."""
        counts = Counter(row.status for line in self.rows for cell in line.cells if cell for row in cell.rows)
        return [(STATUS_STYLES[status], counts[status]) for status in sorted(counts, key=severity)]


def matrix(runs: Sequence[Run]) -> list[Group]:
    """Return the requirements of all runs by operation, the worst first and else in the order of the results."""
    found: dict[str, dict[str, dict[str, list[Result]]]] = {}
    for run in runs:
        for row in run.results.results:
            laws = found.setdefault(row.operation, {})
            laws.setdefault(row.requirement, {}).setdefault(run.label, []).append(row)
    groups = [
        Group(operation, tuple(_row(requirement, met, runs) for requirement, met in laws.items()))
        for operation, laws in found.items()
    ]
    return sorted(groups, key=lambda group: group.worst)


def by_equation(groups: Sequence[Group]) -> dict[str, list[tuple[Group, MatrixRow]]]:
    """Return by the number of an equation the requirements that rest on it, where some run provides them."""
    found: dict[str, list[tuple[Group, MatrixRow]]] = {}
    for group in groups:
        for row in group.asked if group.provided else ():
            for number in row.equations:
                found.setdefault(number, []).append((group, row))
    return found


def filters(groups: Sequence[Group]) -> list[tuple[str, int]]:
    """Return the choices of what is shown, each with the operations that it leaves; those that leave none are none."""
    counts = Counter(kind for group in groups if group.provided for kind in group.kinds)
    return [(kind, counts[kind]) for kind in FILTERS if counts[kind]]


def _row(requirement: str, met: Mapping[str, Sequence[Result]], runs: Sequence[Run]) -> MatrixRow:
    held = [Cell(run, requirement, tuple(met[run.label])) if run.label in met else None for run in runs]
    first = next(iter(met.values()))[0]
    return MatrixRow(requirement, tuple(first.equations), first.kind, tuple(held))


def as_float(ratio: float | str | None) -> float | None:
    """Return a ratio as a number; the schema writes those that are not finite as text."""
    return None if ratio is None or ratio == "nan" else float(ratio)


def _worst_ratio(rows: Sequence[Result]) -> float | None:
    return max((found for row in rows if (found := as_float(row.worst_ratio)) is not None), default=None)
