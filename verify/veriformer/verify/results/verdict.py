"""Statuses of rows, and verdicts on runs with why there may be none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Protocol


class Status(StrEnum):
    """Status of a row; what did not run never looks like what held."""

    PASS = "pass"
    FAIL = "fail"
    ADVICE = "advice"  # failed, at a requirement of lesser weight
    DEVIATION = "deviation"  # holds by a convention that the target claims, other than the contract's
    KNOWN_FAIL = "known-fail"  # failed, as a waiver says
    UNEXPECTED_PASS = "unexpected-pass"  # holds, where a waiver says that it fails
    NOT_PROVIDED = "not-provided"  # the target has no such operation or argument, or refuses every such call
    NOT_APPLICABLE = "not-applicable"  # the requirement asks for nothing in this dtype, or of such a target
    BLOCKED = "blocked"  # not run: a row that it rests on did not hold
    VACUOUS = "vacuous"  # run, and the bound exceeds what it judges in most examples
    TIMEOUT = "timeout"  # did not end in the time that a row may take
    CRASH = "crash"  # the target ended its process
    HARNESS_ERROR = "harness-error"  # the suite itself made an error


VIOLATIONS = frozenset({Status.FAIL, Status.TIMEOUT, Status.CRASH, Status.UNEXPECTED_PASS})
"""Statuses that make the exit status 1."""

BLOCKING = VIOLATIONS | {Status.BLOCKED, Status.HARNESS_ERROR}
"""Statuses of a prerequisite that block what rests on it."""

EXERCISED = VIOLATIONS | {Status.PASS, Status.ADVICE, Status.DEVIATION, Status.KNOWN_FAIL}
"""Statuses of a requirement that was put to the test."""

HELD = frozenset({Status.PASS, Status.DEVIATION})
"""Statuses of rows that show something in favour of an implementation."""


class Verdict(StrEnum):
    """Verdict on a run."""

    HOLDS = "holds"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"  # nothing is violated, and what would show that it holds was not exercised
    INVALID = "invalid"  # rows are missing, or the suite itself made an error


EXIT_STATUS = {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.INCONCLUSIVE: 3, Verdict.INVALID: 3}
"""Exit status of each verdict."""


class Judged(Protocol):
    """The part of a row that decides on the verdict."""

    @property
    def requirement(self) -> str:
        """The slug of what was demanded."""

    @property
    def operation(self) -> str:
        """The operation that it was demanded of."""

    @property
    def dtype(self) -> str | None:
        """The format in which it was demanded."""

    @property
    def status(self) -> Status:
        """Status of the row."""

    @property
    def message(self) -> str | None:
        """Why."""

    @property
    def finding(self) -> str | None:
        """The id of the finding that explains it."""


def gaps(rows: Iterable[Judged], bounded: Collection[str] = ()) -> list[str]:
    """Return the reasons why rows without a violation do not show conformance; none where they do.

    bounded: ids of weaknesses whose condition an experiment confirmed: their rows hold for all other calls.
    """
    statuses: dict[str, dict[str, list[Status]]] = defaultdict(lambda: defaultdict(list))
    said: dict[str, str] = {}
    for row in rows:
        if row.status is Status.ADVICE and row.message:
            said.setdefault(row.requirement, f" ({row.message.partition(chr(10))[0][:120]})")
        statuses[row.operation][row.requirement].append(_status(row, bounded))
    provided = {operation: met for operation, met in statuses.items() if _provided(met)}
    if not provided:
        return [f"nothing is provided of {', '.join(statuses)}"]
    missing, unheld = [], []
    for operation, met in provided.items():
        core = _core(operation, met)
        exercised = {status for slug in core for status in met[slug]} & EXERCISED
        if not exercised:
            missing.append(" and ".join(core))
        elif exercised == {Status.ADVICE} and core[0] in _named(operation):
            unheld.append(core[0])
    missing += [slug for met in provided.values() for slug, found in met.items() if _structural(slug) and _blind(found)]
    return [
        *(f"{what} not exercised in any dtype" for what in dict.fromkeys(missing)),
        *(f"{what} was seen to hold in no dtype{said.get(what, '')}" for what in unheld),
    ]


def _status(row: Judged, bounded: Collection[str]) -> Status:
    """Return the status of a row; of one that a bounded weakness alone explains, that it holds."""
    return Status.PASS if row.status is Status.ADVICE and row.finding in bounded else row.status


def dtypes_that_hold(rows: Iterable[Judged], bounded: Collection[str] = ()) -> dict[str, list[str]]:
    """Return by operation the dtypes in which its equation (or its form, where it has none) was seen to hold.

    bounded: as of ``gaps``.
    """
    rows = list(rows)
    slugs: dict[str, dict[str, list[Status]]] = defaultdict(dict)
    for row in rows:
        slugs[row.operation][row.requirement] = []
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if (
            _status(row, bounded) in HELD
            and row.dtype
            and row.requirement in _core(row.operation, slugs[row.operation])
        ):
            found[row.operation].append(row.dtype)
    return {operation: list(dict.fromkeys(dtypes)) for operation, dtypes in found.items()}


STRUCTURAL = frozenset({"causality", "padding", "cache"})
"""Words in the names of laws that say who may see what: where they were asked for and show nothing, nothing holds."""


def _structural(slug: str) -> bool:
    return not STRUCTURAL.isdisjoint(slug.partition(".")[2].split("_"))


def _blind(found: list[Status]) -> bool:
    """Return whether a requirement was run and could in no dtype tell right from wrong."""
    return Status.VACUOUS in found and not any(status in EXERCISED for status in found)


def _provided(met: dict[str, list[Status]]) -> bool:
    return any(status is not Status.NOT_PROVIDED for found in met.values() for status in found)


def _core(operation: str, met: dict[str, list[Status]]) -> list[str]:
    """Return the slug of an operation's equation, or of its contract if it has no equation; of a selection with
    neither, all.
    """
    return next(([slug] for slug in _named(operation) if slug in met), list(met))


def _named(operation: str) -> tuple[str, str]:
    """Return the slugs of the requirements that define an operation's result: the equation, then the contract."""
    return f"{operation}.equation", f"{operation}.contract"
