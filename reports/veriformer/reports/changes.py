"""What changed between two sets of runs: newly failing first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from veriformer.reports.statuses import LOOKS, SHOWN
from veriformer.verify.results import VIOLATIONS, Result, Results, Status


class Sort(IntEnum):
    """What a change means, in the order in which changes are told."""

    NEWLY_FAILING = 0
    NEWLY_PASSING = 1
    OTHER = 2


HEADINGS = {Sort.NEWLY_FAILING: "newly failing", Sort.NEWLY_PASSING: "newly passing", Sort.OTHER: "other changes"}


@dataclass(frozen=True)
class Change:
    """A row that is not what it was; ``old`` or ``new`` is None where there is no such row."""

    target: str
    key: str
    old: Result | None
    new: Result | None

    @property
    def sort(self) -> Sort:
        """What the change means."""
        was = self.old is not None and self.old.status in VIOLATIONS
        fails = self.new is not None and self.new.status in VIOLATIONS
        if fails and not was:
            return Sort.NEWLY_FAILING
        passes = self.new is not None and self.new.status in SHOWN
        return Sort.NEWLY_PASSING if was and passes else Sort.OTHER

    @property
    def fails_newly(self) -> bool:
        """Whether it fails and did not before."""
        return self.sort is Sort.NEWLY_FAILING

    def __str__(self) -> str:
        return f"{self.target}  {self.key}: {_word(self.old)} → {_word(self.new)}"


def changes(old: Sequence[Results], new: Sequence[Results]) -> list[Change]:
    """Every row whose status changed, appeared or went, newly failing ones first.

    Runs are matched by target and device; where each side holds a single run, these two are compared whatever they are
    called.
    """
    found = [change for pair in _pairs(old, new) for change in _changes(*pair)]
    return sorted(found, key=lambda change: change.sort)  # a stable sort keeps the order of the suite


def gaps(runs: Sequence[Results]) -> list[str]:
    """Why runs cannot be relied on: rows that were planned and did not run, and errors of the suite itself."""
    found = []
    for run in runs:
        if len(run.results) != run.planned:
            found.append(f"{run.implementation['target']}: {len(run.results)} of {run.planned} planned rows ran")
        errors = run.summary.get(Status.HARNESS_ERROR.value, 0)
        if errors:
            found.append(f"{run.implementation['target']}: the suite itself broke in {errors} of its rows")
    return found


Pair = tuple[str, Results | None, Results | None]


def _pairs(old: Sequence[Results], new: Sequence[Results]) -> Iterator[Pair]:
    if len(old) == len(new) == 1:
        yield str(new[0].implementation["target"]), old[0], new[0]
        return
    before, after = _by_name(old), _by_name(new)
    for name in dict.fromkeys([*after, *before]):
        yield name[0] if name[1] in (None, "cpu") else f"{name[0]} on {name[1]}", before.get(name), after.get(name)


def _by_name(runs: Sequence[Results]) -> dict[tuple[str, str | None], Results]:
    return {(str(run.implementation["target"]), run.environment["device"]): run for run in runs}


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
    return LOOKS[row.status].word if row else "no row"
