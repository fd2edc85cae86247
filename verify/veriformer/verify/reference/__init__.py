"""Explanations of every name that the suite gives or takes, each kind of names in a file of its own.

Nothing here imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from veriformer.spec.explanation import Explanation
from veriformer.spec.suggestion import meant
from veriformer.verify.reference import claims, equations, exit_statuses, fields, operations, requirements


@dataclass(frozen=True)
class Kind:
    """Names of one kind: all of them, those that match a word, and the explanation of each."""

    names: Callable[[], Iterable[str]]
    matching: Callable[[str], Iterable[str]]
    explain: Callable[[str], Explanation]


class UnknownNameError(ValueError):
    """An unknown name; the message suggests similar ones."""


def _exactly(names: Callable[[], Iterable[str]]) -> Callable[[str], Iterable[str]]:
    return lambda word: [name for name in names() if name == word]


KINDS: dict[str, Kind] = {
    "requirement": Kind(requirements.names, _exactly(requirements.names), requirements.explain),
    "operation": Kind(operations.names, _exactly(operations.names), operations.explain),
    "claim": Kind(claims.names, claims.matching, claims.explain),
    "exit status": Kind(exit_statuses.names, exit_statuses.matching, exit_statuses.explain),
    "field": Kind(fields.names, fields.matching, fields.explain),
    "equation": Kind(equations.names, equations.matching, equations.explain),
}
"""By what the names are called. Equations come last: their registry imports NumPy."""


def explanations(word: str) -> list[Explanation]:
    """Return the explanation of all that a word names: equations by slug only where nothing else is called so.

    Raises UnknownNameError where it names nothing.
    """
    found: list[Explanation] = []
    for name, kind in KINDS.items():
        if name != "equation" or not found or word[:1].isdigit():
            found += [kind.explain(one) for one in kind.matching(word)]
    if not found:
        known = [name for kind in KINDS.values() for name in kind.names()]
        raise UnknownNameError(
            f"nothing is called {word!r}{meant(word, known)}: expected a requirement (attention.causality), an "
            "operation (attention), an equation (24a), a claim (rope.pairing), an exit status (3) or a field of "
            "results.json (worst_ratio)"
        )
    return found
