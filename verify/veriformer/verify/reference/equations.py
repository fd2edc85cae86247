"""Equations, which the specification explains. Its registry takes a while to import, so it is imported where needed."""

from __future__ import annotations

from collections.abc import Iterable

from veriformer.spec.explanation import Explanation


def names() -> Iterable[str]:
    """Return the number of each equation, or its slug where it has none."""
    from veriformer.spec.registry import equations

    return [one.label for one in equations()]


def matching(word: str) -> Iterable[str]:
    """Return the equations of that number (24 is 24a and 24b), or of that slug."""
    from veriformer.spec.registry import equations

    return [one.label for one in equations() if word in (one.label, one.slug) or one.label in (f"{word}a", f"{word}b")]


def explain(name: str) -> Explanation:
    """Return the explanation of the equation of that label."""
    from veriformer.spec.explained_equation import explained
    from veriformer.spec.registry import equations

    return next(explained(one) for one in equations() if one.label == name)
