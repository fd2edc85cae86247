"""Pairs of implementations: a problem, and code that solves it rightly, coarsely, or only in appearance."""

from __future__ import annotations

from pathlib import Path

from veriformer.verify.comparison import Comparison, compare

PAIRS = Path(__file__).parent / "pairs"
"""``problems`` are references; ``right``, ``wrong`` and ``coarse`` hold candidates, named after their problem."""


def candidates(kind: str) -> list[str]:
    """The names of all candidates of one kind."""
    return sorted(path.stem for path in (PAIRS / kind).glob("*.py"))


def compared(kind: str, name: str) -> Comparison:
    """The comparison of a candidate with its problem."""
    problem = PAIRS / "problems" / f"{name.partition('__')[0]}.py"
    return compare(problem, PAIRS / kind / f"{name}.py")
