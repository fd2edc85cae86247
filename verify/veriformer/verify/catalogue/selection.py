"""The catalogue holds every check, and finds those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from veriformer.spec.requirements.selection import UnknownSelectionError, matching
from veriformer.verify.judging.check import Check


@cache
def checks() -> tuple[Check, ...]:
    """Every check of the suite, prerequisites before what rests on them."""
    from veriformer.verify.catalogue.checks import ALL

    return tuple(ALL)


def select(wanted: Sequence[str], among: Iterable[Check] | None = None) -> list[Check]:
    """The checks that are selected: by requirement, operation, equation number (``24a``, ``20-23``) or glob.

    Prerequisites come along. Nothing selected is everything. Raises UnknownSelectionError for a word without a match.
    """
    everything = list(checks() if among is None else among)
    if not wanted:
        return everything
    among_all = [check.requirement for check in everything]
    chosen = {requirement.slug for word in wanted for requirement in matching(word, among_all)}
    grown = True
    while grown:
        needed = {slug for c in everything if c.requirement.slug in chosen for slug in c.requirement.prerequisites}
        grown = not needed <= chosen
        chosen |= needed
    return [check for check in everything if check.requirement.slug in chosen]


__all__ = ["UnknownSelectionError", "checks", "select"]
