"""What of a run is needed to tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from veriformer.spec.requirement import Weight
from veriformer.verify.domain.record import Domain
from veriformer.verify.findings.record import Finding

HELD = frozenset({"pass", "deviation"})
"""Statuses of rows that show something in favour of an implementation."""

HARNESS_ERROR = "harness-error"


class Run(Protocol):
    """The part of ``Results`` that is told. A protocol, because ``Results`` itself tells its findings."""

    @property
    def implementation(self) -> Mapping[str, Any]:
        """What was held against the specification."""

    @property
    def profile(self) -> str:
        """How much work was done."""

    @property
    def seed(self) -> str:
        """What draws were derived from."""

    @property
    def duration_s(self) -> float:
        """How long it took."""

    @property
    def planned(self) -> int:
        """Rows that were to run."""

    @property
    def results(self) -> Sequence[Any]:
        """Rows that ran."""

    @property
    def violations(self) -> Sequence[Any]:
        """Rows that make the run fail."""

    @property
    def summary(self) -> Mapping[str, int]:
        """Rows by status."""

    @property
    def verdict(self) -> str:
        """What the run comes to."""

    @property
    def gaps(self) -> Sequence[str]:
        """Why rows without a violation show nothing."""

    @property
    def unseen(self) -> Sequence[str]:
        """Why the implementation was not judged whole."""

    @property
    def held(self) -> Mapping[str, Sequence[str]]:
        """By operation the dtypes in which its equation was seen to hold."""

    def weighs(self, weight: Weight) -> bool:
        """Return whether a finding of this weight violates."""

    @property
    def global_state(self) -> Mapping[str, Sequence[str]]:
        """What the target changes of its process."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Root causes."""

    @property
    def domain(self) -> Mapping[str, Domain]:
        """What the target supports."""


def number(count: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def named(names: Sequence[str], most: int) -> str:
    """The names as a person lists them, those above so many only counted."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
