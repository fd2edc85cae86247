"""A condition on calls, in the features that a call must have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from veriformer.spec.requirement import Weight
from veriformer.verify.domain.features import GRADIENTS, feature, weight_of

_COST = {Weight.WRONG: 6.0, Weight.LEAK: 6.0, Weight.FRAGILE: 7.0}
"""Bits that naming a feature takes: one of about sixty, degenerate ones less likely than others."""

_INCIDENTAL = 3.0
"""Bits more for what most calls have by the way, such as a size that is no multiple of 16."""

_REQUIREMENT_COST = 8.0


@dataclass(frozen=True)
class Condition:
    """Calls of an operation that have all of these features at once; without any, every call.

    requirement: only calls that this requirement is judged by, where no feature tells them from others.
    """

    operation: str
    names: tuple[str, ...] = ()
    requirement: str | None = None

    def met(self, calls: Iterable[frozenset[str]]) -> bool:
        """Whether one of these calls has all the features."""
        return not self.names or any(call.issuperset(self.names) for call in calls)

    @property
    def always(self) -> bool:
        """Whether every call meets it."""
        return not self.names and self.requirement is None

    @property
    def cost(self) -> float:
        """How much a condition must explain to be worth stating: less where it is short and ordinary."""
        return sum(map(self._cost, self.names)) + (_REQUIREMENT_COST if self.requirement else 0.0)

    def _cost(self, name: str) -> float:
        known = feature(self.operation, name)
        return 0.0 if known is None else _COST[known.weight] + (_INCIDENTAL if " no " in f" {name}" else 0.0)

    @property
    def weight(self) -> Weight:
        """What is at stake where only such calls go wrong."""
        return weight_of(self.operation, frozenset(self.names))

    @property
    def words(self) -> str | None:
        """The condition as the end of a sentence: ``with grouped heads``; None where every call meets it."""
        of_calls = [name for name in self.names if name != GRADIENTS]
        asked = ["when gradients are asked for"] if GRADIENTS in self.names else []
        given = [f"with {' and '.join(of_calls)}"] if of_calls else []
        return ", ".join([*given, *asked]) or None
