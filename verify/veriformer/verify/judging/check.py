"""Check: one Hypothesis property bound to one requirement on one operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from veriformer.spec.requirement import Requirement
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.judging.judge import RunStatistics
from veriformer.verify.judging.trial import Trial
from veriformer.verify.targets.target import Target


@dataclass(frozen=True, kw_only=True)
class Check:
    """Property test of one requirement.

    property_test: judges one example through its Trial; raises Violation, or returns.
    dtypes: record names of the formats it is judged in.
    effort: multiple of the profile's number of examples.
    convention: the convention that this check is about; where a target claims another value than the contract's,
        passing is a deviation that was kept to.
    finish: judges the examples of the whole row together, where a single one cannot tell.
    applies: from a target, the operation and the dtype to the reason why this check does not apply, None where it does.
    """

    requirement: Requirement
    property_test: Callable[[Trial], None]
    dtypes: tuple[str, ...] = dtypes.NAMES
    effort: float = 1.0
    convention: str | None = None
    finish: Callable[[RunStatistics], None] | None = None
    applies: Callable[[Target, str, str], str | None] | None = None

    @property
    def operation(self) -> str:
        """Name of the judged operation."""
        return self.requirement.operation

    @property
    def positional(self) -> tuple[str, ...]:
        """Positional arguments of the operation; none for whole models, whose drivers take them by name."""
        return POSITIONAL.get(self.operation, ())
