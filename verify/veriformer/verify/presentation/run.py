"""What of a run is needed to tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from veriformer.verify.domain.record import Domain
from veriformer.verify.findings.record import Finding

HELD = frozenset({"pass", "deviation"})
"""Statuses of rows that show something in favour of an implementation."""

HARNESS_ERROR = "harness-error"


class Run(Protocol):
    """The part of ``Results`` that is told. A protocol, because ``Results`` itself tells its findings."""

    @property
    def implementation(self) -> Mapping[str, Any]: ...
    @property
    def profile(self) -> str: ...
    @property
    def seed(self) -> str: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def planned(self) -> int: ...
    @property
    def results(self) -> Sequence[Any]: ...
    @property
    def violations(self) -> Sequence[Any]: ...
    @property
    def summary(self) -> Mapping[str, int]: ...
    @property
    def verdict(self) -> str: ...
    @property
    def gaps(self) -> Sequence[str]: ...
    @property
    def global_state(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def findings(self) -> Sequence[Finding]: ...
    @property
    def domain(self) -> Mapping[str, Domain]: ...


def number(count: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def named(names: Sequence[str], most: int) -> str:
    """The names as a person lists them, those above so many only counted."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
