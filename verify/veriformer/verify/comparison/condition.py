"""Under which condition calls fail: what they have that those that hold have not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from veriformer.spec.requirement import Weight
from veriformer.verify.comparison.case import Case

_NAMED = 3
"""Conditions that are named; what more there are is counted."""


@dataclass(frozen=True)
class Condition:
    """words: the end of a sentence, None where every call fails. weight: what is at stake."""

    words: str | None
    weight: Weight


def condition(failed: Sequence[Case], held: Sequence[Case]) -> Condition:
    """The features that explain which calls fail; none where an ordinary call as given fails too."""
    ordinary = any(case.ordinary for case in failed)
    weight = Weight.WRONG if ordinary else Weight.FRAGILE
    if any(case.features.keys() <= {"other sizes"} for case in failed) or not held:
        return Condition(None, weight)
    open_, named = list(failed), []
    while open_:
        best = max(_features(open_), key=lambda names: _score(names, open_, held), default=frozenset())
        if not best or _score(best, open_, held) <= 0:
            break
        named.append(best)
        open_ = [case for case in open_ if not best <= case.features.keys()]
    if not named:
        return Condition("in some calls", weight)
    more = f" and in {len(named) - _NAMED} more cases" if len(named) > _NAMED else ""
    shown = [_words(name) for name in named[:_NAMED]]
    return Condition(f"{' or '.join(shown)}{more}", weight)


def _features(cases: Sequence[Case]) -> list[frozenset[str]]:
    """Every feature, and every two that a case has at once."""
    alone = {frozenset([name]): None for case in cases for name in case.features}
    both = {frozenset(pair): None for case in cases for pair in combinations(case.features, 2)}
    return [*alone, *both]


def _score(names: frozenset[str], failed: Sequence[Case], held: Sequence[Case]) -> float:
    """Score names by the failing calls that have them, less two for each call that holds; two names score less than
    one."""
    met = sum(names <= case.features.keys() for case in failed)
    wrongly = sum(names <= case.features.keys() for case in held)
    return met - 2 * wrongly + (0.5 if wrongly == 0 else 0) - 0.25 * (len(names) - 1)


def _words(names: frozenset[str]) -> str:
    modes = sorted(name for name in names if name.endswith(" mode") or name.startswith(("bfloat", "float")))
    others = sorted(names - {*modes, "gradients"})
    things = [f"with {' and '.join(others)}"] if others else []
    asked = ["when gradients are taken"] if "gradients" in names else []
    return " ".join([*things, *(f"in {name}" for name in modes), *asked])
