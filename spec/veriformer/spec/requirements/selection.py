"""Selection of requirements by a word: the one way of asking for them, on every command line."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from veriformer.spec.requirement import Requirement
from veriformer.spec.suggestion import meant, some


class UnknownSelectionError(ValueError):
    """A selection that matches nothing; the message says what comes close."""


def matching(word: str, among: Sequence[Requirement]) -> list[Requirement]:
    """Return the requirements that a word selects: by slug, operation, equation number (``24a``, ``20-23``) or glob.

    Raises UnknownSelectionError where it selects none.
    """
    numbers = _equation_numbers(word)
    found = [
        requirement
        for requirement in among
        if fnmatchcase(requirement.slug, word)
        or fnmatchcase(requirement.operation, word)
        or numbers.intersection(requirement.equations)
    ]
    if not found:
        operations = dict.fromkeys(requirement.operation for requirement in among)
        every = sorted({number for requirement in among for number in requirement.equations}, key=_by_number)
        known = [*operations, *(requirement.slug for requirement in among), *every]
        raise UnknownSelectionError(
            f"selection {word!r} matches no check{meant(word, known)}: expected a requirement (attention.causality), "
            f"an operation ({some(operations)}), an equation number (24a, 20-23; of "
            f"{' to '.join((*every[:1], *every[-1:]))}) or a glob (softmax.*); 'veriformer requirements' lists them"
        )
    return found


def selected(words: Sequence[str], among: Sequence[Requirement]) -> list[Requirement]:
    """Return the requirements that any of the words selects, and their prerequisites; all of them for no words.

    Raises UnknownSelectionError for a word without a match.
    """
    if not words:
        return list(among)
    chosen = {requirement.slug for word in words for requirement in matching(word, among)}
    grown = True
    while grown:
        needed = {slug for one in among if one.slug in chosen for slug in one.prerequisites}
        grown = not needed <= chosen
        chosen |= needed
    return [requirement for requirement in among if requirement.slug in chosen]


def _by_number(number: str) -> tuple[int, str]:
    digits = number.rstrip("ab")
    return int(digits), number.removeprefix(digits)


def _equation_numbers(word: str) -> set[str]:
    if not word[:1].isdigit():
        return set()
    from veriformer.spec.registry import UnknownEquationError  # the registry is slow to import and seldom needed
    from veriformer.spec.registry import select as select_equations

    try:
        return {equation.number for equation in select_equations(word) if equation.number}
    except UnknownEquationError:
        return set()
