"""The interface of a run to what presents it."""

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
        """Name and properties of the judged implementation."""

    @property
    def profile(self) -> str:
        """Name of the profile, which sets the amount of work."""

    @property
    def seed(self) -> str:
        """Seed of all draws."""

    @property
    def duration_s(self) -> float:
        """Duration in seconds."""

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
        """Verdict of the run."""

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
        """Changes of the target to its process, by operation."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Root causes."""

    @property
    def domain(self) -> Mapping[str, Domain]:
        """Supported domain, by operation."""


def number(count: int, noun: str) -> str:
    """Return ``1 row``, ``2 rows``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def named(names: Sequence[str], most: int) -> str:
    """Return names as a person lists them, those above so many only counted."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
