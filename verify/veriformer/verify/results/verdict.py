"""What a run comes to, and why there may be no verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

from veriformer.verify.results.status import EXERCISED, Status


class Verdict(StrEnum):
    """What a run comes to."""

    HOLDS = "holds"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"  # nothing is violated, and what would show that it holds was not exercised
    INVALID = "invalid"  # rows are missing, or the suite itself made an error


EXIT_STATUS = {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.INCONCLUSIVE: 3, Verdict.INVALID: 3}
"""What a process ends with."""


class Judged(Protocol):
    """What is asked of a row here."""

    @property
    def requirement(self) -> str:
        """The slug of what was demanded."""

    @property
    def operation(self) -> str:
        """The operation that it was demanded of."""

    @property
    def status(self) -> Status:
        """What became of it."""


def gaps(rows: Iterable[Judged]) -> list[str]:
    """Why rows without a violation do not show that an implementation holds; nothing where they do."""
    statuses: dict[str, dict[str, list[Status]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        statuses[row.operation][row.requirement].append(row.status)
    provided = {operation: met for operation, met in statuses.items() if _provided(met)}
    if not provided:
        return [f"nothing is provided of {', '.join(statuses)}"]
    cores = {operation: _core(operation, met) for operation, met in provided.items()}
    missing = [
        " and ".join(core)
        for operation, core in cores.items()
        if not any(status in EXERCISED for slug in core for status in provided[operation][slug])
    ]
    missing += [slug for met in provided.values() for slug, found in met.items() if _structural(slug) and _blind(found)]
    unheld = [
        operation
        for operation, core in cores.items()
        if core != list(provided[operation]) and _advised_alone(provided[operation])
    ]
    return [
        *(f"{what} not exercised in any dtype" for what in dict.fromkeys(missing)),
        *(f"nothing of {operation} was seen to hold" for operation in unheld),
    ]


def _advised_alone(met: dict[str, list[Status]]) -> bool:
    """Whether all that was put to the test came to advice: it violates nothing, and shows nothing either."""
    return {status for found in met.values() for status in found} & EXERCISED == {Status.ADVICE}


STRUCTURAL = frozenset({"causality", "padding", "cache"})
"""Words in the names of laws that say who may see what: where they were asked for and show nothing, nothing holds."""


def _structural(slug: str) -> bool:
    return not STRUCTURAL.isdisjoint(slug.partition(".")[2].split("_"))


def _blind(found: list[Status]) -> bool:
    """Whether a requirement was run and could in no dtype tell right from wrong."""
    return Status.VACUOUS in found and not any(status in EXERCISED for status in found)


def _provided(met: dict[str, list[Status]]) -> bool:
    return any(status is not Status.NOT_PROVIDED for found in met.values() for status in found)


def _core(operation: str, met: dict[str, list[Status]]) -> list[str]:
    """The equation of an operation, or its form where it has none; of a selection that has neither, all of it."""
    for name in ("equation", "contract"):
        if f"{operation}.{name}" in met:
            return [f"{operation}.{name}"]
    return list(met)
