"""The smallest condition that failing examples meet and others do not."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veriformer.verify.contract import dtypes
from veriformer.verify.domain.features import GRADIENTS
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.evidence import Example

BITS = 6.0
"""What a failure costs that nothing explains, in bits: as much as naming one feature of about sixty."""

MOST = 0.6
"""Where more of the examples than this fail, no condition is looked for: what holds is by chance, such as zeros."""

_WIDEST = 40
"""Features that may be joined in pairs: those that most of the failing examples have."""

_BY_THE_WAY = frozenset((*dtypes.NAMES, GRADIENTS))
"""Features that are no condition: the findings tell formats apart, and gradients are asked for where they are wrong."""

Marks = NDArray[np.bool_]


class _Table:
    """Which call of which example has which feature."""

    def __init__(self, examples: Sequence[Example], names: Sequence[str]) -> None:
        place = {name: i for i, name in enumerate(names)}
        rows = [(e, call) for e, example in enumerate(examples) for call in example.calls]
        self.of = np.array([e for e, _ in rows], dtype=np.intp)
        self.marks = np.zeros((len(names), len(rows)), dtype=np.bool_)
        self.count = len(examples)
        for i, (_, call) in enumerate(rows):
            for name in call:
                if name in place:
                    self.marks[place[name], i] = True

    def meeting(self, *features: int) -> Marks:
        """Which examples have a call with all of these features."""
        met = np.zeros(self.count, dtype=np.bool_)
        met[self.of[np.logical_and.reduce(self.marks[list(features)])]] = True
        return met


def conditions(
    operation: str, failed: Sequence[Example], held: Sequence[Example], refuted: Collection[Condition] = ()
) -> list[tuple[float, Condition]]:
    """Conditions by what they explain, the best first: by the shortest description of which examples fail.

    A description names the condition and then, apart for the examples that meet it and for the others, says which fail;
    it is in bits, and what it saves against naming every failure is the score. Every call, a requirement, a feature or
    two at once are tried, but for those in ``refuted``; what saves nothing is left out.
    """
    scored = ((saved, condition) for saved, condition in _scored(operation, failed, held) if condition not in refuted)
    return sorted((one for one in scored if one[0] > 0), key=lambda one: (-one[0], one[1].cost, one[1].names))


def _scored(operation: str, failed: Sequence[Example], held: Sequence[Example]) -> Iterator[tuple[float, Condition]]:
    total = (len(failed), len(held))
    yield _saved(total, total), Condition(operation)
    if len(failed) > MOST * sum(total):
        return
    for slug in dict.fromkeys(example.row.check.requirement.slug for example in failed):
        condition = Condition(operation, requirement=slug)
        met = [sum(example.row.check.requirement.slug == slug for example in side) for side in (failed, held)]
        yield _saved((met[0], met[1]), total) - condition.cost, condition
    names = sorted({name for example in failed for call in example.calls for name in call} - _BY_THE_WAY)
    bad, good = _Table(failed, names), _Table(held, names)
    share = [int(bad.meeting(i).sum()) for i in range(len(names))]
    widest = sorted(range(len(names)), key=lambda i: -share[i])[:_WIDEST]
    for places in (*((i,) for i in range(len(names))), *combinations(sorted(widest), 2)):
        condition = Condition(operation, tuple(names[i] for i in places))
        counts = int(bad.meeting(*places).sum()), int(good.meeting(*places).sum())
        yield _saved(counts, total) - condition.cost, condition


def _saved(met: tuple[int, int], total: tuple[int, int]) -> float:
    """The bits saved by saying apart which of the examples that meet a condition fail, and which of the others."""
    others = total[0] - met[0], total[1] - met[1]
    if sum(met) and sum(others) and 2 * others[0] * sum(met) > met[0] * sum(others):
        return -math.inf  # those that do not meet it fail more than half as often
    return BITS * total[0] - _bits(*met) - _bits(*others)


def _bits(failed: int, held: int) -> float:
    """The entropy of so many failures among so many examples."""
    n = failed + held
    return sum(count * math.log2(n / count) for count in (failed, held) if count)
