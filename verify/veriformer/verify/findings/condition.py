"""A condition on calls, in the features that a call must have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from veriformer.spec.requirement import Weight
from veriformer.verify.contract.features import GRADIENTS, feature, weight_of

_COST = {Weight.WRONG: 6.0, Weight.LEAK: 6.0, Weight.FRAGILE: 7.0}
"""Bits that naming a feature takes: one of about sixty, degenerate ones less likely than others."""

_INCIDENTAL = 8.0
"""Bits more for what most calls have by the way, such as a size that is no multiple of 16."""

_TOGETHER = 6.0
"""Bits more for every feature beside the first."""

_BY_THE_WAY = re.compile(r"\bno (?:multiple|power) of |^the default of ")

_SIGNS = re.compile(r"^negative values in |^zeros in | of one sign$")

_SEVERAL = re.compile(r"^(?:several|more than one) ")

_MOST_HAVE = re.compile(r"^more than one |^several (?:keys|queries|tokens)$")

_CLAUSES = tuple(
    (re.compile(pattern), clause)
    for pattern, clause in (
        (r"^(\w+) (no (?:multiple|power) of .+)$", r"\1 is \2"),
        (r"^a last axis of (\w+) above (\d+)$", r"the last axis of \1 is longer than \2"),
        (r"^a last axis of (\w+) that is (.+)$", r"the last axis of \1 is \2"),
        (r"^a last axis of one in (\w+)$", r"the last axis of \1 is 1"),
        (r"^(\w+) all zero$", r"\1 is all zero"),
        (r"^(\w+) of (one sign|rank \d+)$", r"\1 is of \2"),
        (r"^the default of (\w+)$", r"\1 is left at its default"),
        (r"^(\w+ [≠<>=] \w+)$", r"\1"),
    )
)
"""Features that are clauses, not things that a call has."""

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
        """Return whether one of these calls has all the features."""
        return not self.names or any(call.issuperset(self.names) for call in calls)

    @property
    def always(self) -> bool:
        """True if every call meets it."""
        return not self.names and self.requirement is None

    @property
    def cost(self) -> float:
        """Bits that a condition must save to be worth stating: fewer where it is short and ordinary."""
        beside = _TOGETHER * max(0, len(self.names) - 1)
        return sum(map(self._cost, self.names)) + beside + (_REQUIREMENT_COST if self.requirement else 0.0)

    def _cost(self, name: str) -> float:
        known = feature(self.operation, name)
        return 0.0 if known is None else _COST[known.weight] + (_INCIDENTAL if by_the_way(name) else 0.0)

    @property
    def weight(self) -> Weight:
        """Severity where only such calls go wrong."""
        return weight_of(self.operation, frozenset(self.names))

    @property
    def words(self) -> str | None:
        """The condition as the end of a sentence: ``with grouped heads``; None where every call meets it."""
        clauses = [clause for name in self.names if (clause := _clause(name)) is not None]
        things = [name for name in self.names if name != GRADIENTS and _clause(name) is None]
        given = [f"with {' and '.join(things)}"] if things else []
        where = [f"where {' and '.join(clauses)}"] if clauses else []
        asked = ["when gradients are asked for"] if GRADIENTS in self.names else []
        return ", ".join([*given, *where, *asked]) or None


def by_the_way(name: str) -> bool:
    """Return whether most calls have this feature whatever else they have: it says little beside another."""
    return _BY_THE_WAY.search(name) is not None


def of_number(name: str) -> bool:
    """Return whether this feature says that there are several of what most calls have several of: rows, heads."""
    return _SEVERAL.search(name) is not None


def most_have(name: str) -> bool:
    """Return whether nearly every call has this feature: beside another one it tells calls apart by chance."""
    return _MOST_HAVE.search(name) is not None


def of_signs(name: str) -> bool:
    """Return whether this feature is about signs and zeros, which every drawn tensor has some of: beside another one it
    tells calls apart by chance."""
    return _SIGNS.search(name) is not None


def _clause(name: str) -> str | None:
    found = (pattern.sub(clause, name) for pattern, clause in _CLAUSES if pattern.search(name))
    return next(found, None)
