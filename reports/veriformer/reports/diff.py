"""Changes of rows between two sets of runs: newly failing first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from veriformer.reports.pairs import pairs
from veriformer.reports.statuses import SHOWN, STATUS_STYLES
from veriformer.verify.presentation.verdict import headline
from veriformer.verify.results import VIOLATIONS, Result, Results, Status, Verdict


class Sort(IntEnum):
    """Kind of change of a row, in the order in which changes are told."""

    NEWLY_FAILING = 0
    LOST = 1
    NEWLY_PASSING = 2
    OTHER = 3


HEADINGS = {
    Sort.NEWLY_FAILING: "newly failing",
    Sort.LOST: "evidence lost",
    Sort.NEWLY_PASSING: "newly passing",
    Sort.OTHER: "other changes",
}

_SILENT = frozenset({Status.NOT_PROVIDED, Status.NOT_APPLICABLE, Status.BLOCKED, Status.VACUOUS, Status.HARNESS_ERROR})
"""Statuses of rows that say nothing about an implementation."""


@dataclass(frozen=True)
class Change:
    """A row that is not what it was; ``old`` or ``new`` is None where there is no such row."""

    target: str
    key: str
    old: Result | None
    new: Result | None

    @property
    def sort(self) -> Sort:
        """Return the kind of the change."""
        was = self.old is not None and self.old.status in VIOLATIONS
        fails = self.new is not None and self.new.status in VIOLATIONS
        if fails and not was:
            return Sort.NEWLY_FAILING
        held = self.old is not None and self.old.status in SHOWN
        if held and (self.new is None or self.new.status in _SILENT):
            return Sort.LOST
        passes = self.new is not None and self.new.status in SHOWN
        return Sort.NEWLY_PASSING if was and passes else Sort.OTHER

    @property
    def worse(self) -> bool:
        """Return whether it fails and did not before, or held and no longer shows anything."""
        return self.sort in (Sort.NEWLY_FAILING, Sort.LOST)

    def __str__(self) -> str:
        return f"{self.target}  {self.key}: {_word(self.old)} → {_word(self.new)}"


def changes(old: Sequence[Results], new: Sequence[Results]) -> list[Change]:
    """Every row whose status changed, appeared or went, newly failing ones first.

    Runs are matched by target and device; where each side holds a single run, these two are compared whatever they are
    called.
    """
    found = [change for pair in pairs(old, new) for change in _changes(*pair)]
    return sorted(found, key=lambda change: change.sort)  # a stable sort keeps the order of the suite


def without_verdict(runs: Sequence[Results]) -> list[str]:
    """Runs that show nothing either way, each as what it is: invalid or inconclusive, and why."""
    lacking = (run for run in runs if run.verdict in (Verdict.INVALID, Verdict.INCONCLUSIVE))
    return [f"{run.verdict.upper()} {headline(run)}" for run in lacking]


def _changes(target: str, old: Results | None, new: Results | None) -> Iterator[Change]:
    before, after = _by_key(old), _by_key(new)
    for key in dict.fromkeys([*after, *before]):
        change = Change(target, key, before.get(key), after.get(key))
        if _status(change.old) != _status(change.new):
            yield change


def _by_key(run: Results | None) -> dict[str, Result]:
    return {row.key: row for row in run.results} if run else {}


def _status(row: Result | None) -> Status | None:
    return row.status if row else None


def _word(row: Result | None) -> str:
    return STATUS_STYLES[row.status].word if row else "no row"
