"""Selection of checks from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from veriformer.spec.requirements.selection import UnknownSelectionError, selected

if TYPE_CHECKING:
    from veriformer.verify.judging.check import Check


@cache
def checks() -> tuple[Check, ...]:
    """Return every check of the suite, prerequisites before what rests on them."""
    from veriformer.verify.catalogue.checks import ALL

    return tuple(ALL)


def select(wanted: Sequence[str], among: Iterable[Check] | None = None) -> list[Check]:
    """Return the checks selected by requirement, operation, equation number (``24a``, ``20-23``) or glob.

    Prerequisites come along. Nothing selected is everything. Raises UnknownSelectionError for a word without a match.
    """
    everything = list(checks() if among is None else among)
    chosen = {requirement.slug for requirement in selected(wanted, [check.requirement for check in everything])}
    return [check for check in everything if check.requirement.slug in chosen]


__all__ = ["UnknownSelectionError", "checks", "select"]
