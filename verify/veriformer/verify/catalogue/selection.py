"""The catalogue holds every check, and finds those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache

from veriformer.verify.judging.check import Check


@cache
def checks() -> tuple[Check, ...]:
    """Every check of the suite, prerequisites before what rests on them."""
    from veriformer.verify.catalogue.checks import ALL

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
