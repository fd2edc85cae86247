"""Exit statuses of ``veriformer verify``."""

from __future__ import annotations

from collections.abc import Iterable

from veriformer.spec.exit_statuses import EXIT_STATUSES
from veriformer.spec.explanation import Explanation


def names() -> Iterable[str]:
    """Return the numbers."""
    return EXIT_STATUSES


def matching(word: str) -> Iterable[str]:
    """Return the status of that number, before which ``exit:`` may stand."""
    return [number for number in EXIT_STATUSES if number == word.removeprefix("exit:")]


def explain(name: str) -> Explanation:
    """Return what a run of that exit status comes to."""
    return Explanation(kind="exit status", name=name, remark="exit status of verify", paragraphs=(EXIT_STATUSES[name],))
