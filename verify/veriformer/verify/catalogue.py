"""A check is one Hypothesis property, bound to one requirement on one operation; the catalogue holds all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from veriformer.spec.requirement import Requirement
from veriformer.verify import dtypes
from veriformer.verify.contract import POSITIONAL
from veriformer.verify.judge import Tally
from veriformer.verify.loading import Target
from veriformer.verify.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Check:
    """A property and what it is evidence for.

    body: judges one example through its Trial; raises Violation, or returns.
    dtypes: record names of the formats it is judged in.
    effort: multiple of the profile's number of examples.
    convention: the convention that this check is about; where a target claims another value than the contract's,
        passing is a deviation that was kept to.
    finish: judges the examples of the whole row together, where a single one cannot tell.
    applies: from a target, the operation and the dtype to the reason why this check does not apply, None where it does.
    """

    requirement: Requirement
    body: Callable[[Trial], None]
    dtypes: tuple[str, ...] = dtypes.NAMES
    effort: float = 1.0
    convention: str | None = None
    finish: Callable[[Tally], None] | None = None
    applies: Callable[[Target, str, str], str | None] | None = None

    @property
    def operation(self) -> str:
        """The operation judged."""
        return self.requirement.operation

    @property
    def positional(self) -> tuple[str, ...]:
        """The operation's positional arguments; whole models are asked in ways of their own, by name."""
        return POSITIONAL.get(self.operation, ())


@cache
def checks() -> tuple[Check, ...]:
    """Every check of the suite, prerequisites before what rests on them."""
    from veriformer.verify.checks import ALL

    return tuple(ALL)


class UnknownSelectionError(ValueError):
    """A selection that matches nothing; the message lists what exists."""


def select(wanted: Sequence[str], among: Iterable[Check] | None = None) -> list[Check]:
    """The checks that are selected: by requirement, operation, equation number (``24a``, ``20-23``) or glob.

    Prerequisites come along. Nothing selected is everything. Raises UnknownSelectionError for a word without a match.
    """
    everything = list(checks() if among is None else among)
    if not wanted:
        return everything
    chosen = {check.requirement.slug for word in wanted for check in _matching(word, everything)}
    grown = True
    while grown:
        needed = {slug for c in everything if c.requirement.slug in chosen for slug in c.requirement.prerequisites}
        grown = not needed <= chosen
        chosen |= needed
    return [check for check in everything if check.requirement.slug in chosen]


def _matching(word: str, everything: Sequence[Check]) -> list[Check]:
    numbers = _equation_numbers(word)
    found = [
        check
        for check in everything
        if fnmatchcase(check.requirement.slug, word)
        or fnmatchcase(check.operation, word)
        or numbers.intersection(check.requirement.equations)
    ]
    if not found:
        operations = ", ".join(dict.fromkeys(check.operation for check in everything))
        raise UnknownSelectionError(
            f"selection {word!r} matches no check. Expected a requirement (attention.causality), an operation "
            f"({operations}), an equation number (24a, 20-23) or a glob (softmax.*)"
        )
    return found


def _equation_numbers(word: str) -> set[str]:
    if not word[:1].isdigit():
        return set()
    from veriformer.spec.registry import UnknownEquationError  # the registry is slow to import and seldom needed
    from veriformer.spec.registry import select as select_equations

    try:
        return {equation.number for equation in select_equations(word) if equation.number}
    except UnknownEquationError:
        return set()
