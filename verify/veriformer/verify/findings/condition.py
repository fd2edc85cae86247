"""Conditions on calls by their features: the smallest that separate failing from passing calls."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.features import GRADIENTS, feature, weight_of
from veriformer.verify.findings.evidence import Example, Failing

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
    """Return whether most calls have this feature, whatever their other features: beside another it carries no
    information.
    """
    return _BY_THE_WAY.search(name) is not None


def of_number(name: str) -> bool:
    """Return whether this feature is a count above 1 of an axis that most calls have several of: rows, heads."""
    return _SEVERAL.search(name) is not None


def most_have(name: str) -> bool:
    """Return whether nearly every call has this feature: beside another one it separates calls by chance."""
    return _MOST_HAVE.search(name) is not None


def of_signs(name: str) -> bool:
    """Return whether this feature is about signs and zeros, which every drawn tensor has some of: beside another one it
    tells calls apart by chance."""
    return _SIGNS.search(name) is not None


def _clause(name: str) -> str | None:
    found = (pattern.sub(clause, name) for pattern, clause in _CLAUSES if pattern.search(name))
    return next(found, None)


BITS = 6.0
"""Cost in bits of a failure that nothing explains: as much as naming one feature of about sixty."""

MOST = 0.6
"""Where more of the examples than this fail, what holds is by chance, such as zeros, unless what fails has several
rows, heads or the like: of conditions these alone are looked for."""

_WIDEST = 40
"""Features that may be joined in pairs: those that most of the failing examples have."""

INNOCENT = 3
"""Ordinary calls that hold under a feature, where none fails, from which it is no condition by itself: were it one for
most calls, so many would hold by chance once in sixteen times."""

_ORDINARY = (".contract", ".equation", ".gradient")
"""Requirements that judge any call: what they find nothing wrong with is right in its values."""

_JUDGED = (Failing.VALUE, Failing.NOT_FINITE, Failing.RAISES)
"""Kinds of failure that rows of ordinary calls would show as well."""

_NO_CONDITION = frozenset((*dtypes.NAMES, GRADIENTS))
"""Features that are no condition: the findings tell formats apart, and gradients are asked for where they are wrong."""

Marks = NDArray[np.bool_]


class _Table:
    """Incidence of features in the calls of examples: marks [features, calls]."""

    def __init__(self, examples: Sequence[Example], names: Sequence[str]) -> None:
        place = {name: i for i, name in enumerate(names)}
        rows = [(e, call) for e, example in enumerate(examples) for call in example.calls]
        self.of = np.array([e for e, _ in rows], dtype=np.intp)
        self.marks = np.zeros((len(names), len(rows)), dtype=np.bool_)
        self.count = len(examples)
        self.ordinary = np.array([one.row.check.requirement.slug.endswith(_ORDINARY) for one in examples], dtype=bool)
        for i, (_, call) in enumerate(rows):
            for name in call:
                if name in place:
                    self.marks[place[name], i] = True

    def meeting(self, *features: int) -> Marks:
        """Return a mask of the examples that have a call with all of these features."""
        met = np.zeros(self.count, dtype=np.bool_)
        met[self.of[np.logical_and.reduce(self.marks[list(features)])]] = True
        return met


def conditions(
    operation: str, failed: Sequence[Example], held: Sequence[Example], refuted: Collection[Condition] = ()
) -> list[tuple[float, Condition]]:
    """Return conditions with the bits that each saves, the best first: minimum description length of the failing
    examples.

    A description names the condition and then, apart for the examples that meet it and for the others, which of them
    fail; the score is what it saves, in bits, against naming every failure. Every call, a requirement, a feature or two
    at once are tried, but for those in ``refuted``; what saves nothing is left out.
    """
    scored = ((saved, condition) for saved, condition in _scored(operation, failed, held) if condition not in refuted)
    return sorted((one for one in scored if one[0] > 0), key=lambda one: (-one[0], one[1].cost, one[1].names))


def _scored(operation: str, failed: Sequence[Example], held: Sequence[Example]) -> Iterator[tuple[float, Condition]]:
    total = (len(failed), len(held))
    yield _saved(total, total), Condition(operation)
    if len(failed) > MOST * sum(total):
        yield from _several(operation, failed, held)
        return
    for slug in dict.fromkeys(example.row.check.requirement.slug for example in failed):
        condition = Condition(operation, requirement=slug)
        met = [sum(example.row.check.requirement.slug == slug for example in side) for side in (failed, held)]
        yield _saved((met[0], met[1]), total) - condition.cost, condition
    names = sorted({name for example in failed for call in example.calls for name in call} - _NO_CONDITION)
    bad, good = _Table(failed, names), _Table(held, names)
    alone = {(i,): (int(bad.meeting(i).sum()), int(good.meeting(i).sum())) for i in range(len(names))}
    telling = (i for i, name in enumerate(names) if not (by_the_way(name) or of_signs(name) or most_have(name)))
    widest = sorted(sorted(telling, key=lambda i: -alone[i,][0])[:_WIDEST])
    both = {(i, j): (int(bad.meeting(i, j).sum()), int(good.meeting(i, j).sum())) for i, j in combinations(widest, 2)}
    earned = {pair: met for pair, met in both.items() if all(_earns(alone[i,], met) for i in pair)}
    judged = all(one.signature is not None and one.signature.kind in _JUDGED for one in failed)
    for places, counts in (alone | earned).items():
        if judged and _innocent(places, bad, good):
            continue
        condition = Condition(operation, tuple(names[i] for i in places))
        yield _saved(counts, total) - condition.cost, condition


def _several(operation: str, failed: Sequence[Example], held: Sequence[Example]) -> Iterator[tuple[float, Condition]]:
    """Yield conditions on counts of arguments, with the bits that each saves."""
    names = sorted({name for example in failed for call in example.calls for name in call if of_number(name)})
    bad, good = _Table(failed, names), _Table(held, names)
    for i, name in enumerate(names):
        condition = Condition(operation, (name,))
        counts = int(bad.meeting(i).sum()), int(good.meeting(i).sum())
        yield _saved(counts, (len(failed), len(held))) - condition.cost, condition


def _innocent(places: tuple[int, ...], bad: _Table, good: _Table) -> bool:
    """Return whether ordinary calls with these features hold: failing takes the additions of other requirements."""
    failed, held = ((table.meeting(*places) & table.ordinary).sum() for table in (bad, good))
    return bool(held >= INNOCENT and not failed)


def _earns(alone: tuple[int, int], both: tuple[int, int]) -> bool:
    """Return whether a second feature is worth naming: it excludes enough examples that hold from those that meet the
    first."""
    return alone[1] - both[1] >= max(2, alone[0] / 4)


def _saved(met: tuple[int, int], total: tuple[int, int]) -> float:
    """Return the bits saved by listing failures apart for the examples that meet a condition and for the others."""
    others = total[0] - met[0], total[1] - met[1]
    if sum(met) and sum(others) and 2 * others[0] * sum(met) > met[0] * sum(others):
        return -math.inf  # those that do not meet it fail more than half as often
    return BITS * total[0] - _bits(*met) - _bits(*others)


def _bits(failed: int, held: int) -> float:
    """Return the entropy of so many failures among so many examples, bits."""
    n = failed + held
    return sum(count * math.log2(n / count) for count in (failed, held) if count)
