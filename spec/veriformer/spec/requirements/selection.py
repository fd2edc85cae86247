"""Which requirements a word selects: the one way of asking for them, on every command line."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from veriformer.spec.requirement import Requirement


class UnknownSelectionError(ValueError):
    """A selection that matches nothing; the message lists what exists."""


def matching(word: str, among: Sequence[Requirement]) -> list[Requirement]:
    """The requirements that a word selects: by slug, operation, equation number (``24a``, ``20-23``) or glob.

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
        operations = ", ".join(dict.fromkeys(requirement.operation for requirement in among))
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
