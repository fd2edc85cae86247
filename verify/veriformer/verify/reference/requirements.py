"""Requirements, which the specification explains."""

from __future__ import annotations

from collections.abc import Iterable

from veriformer.spec.explanation import Explanation
from veriformer.spec.requirements import REQUIREMENTS, requirement
from veriformer.spec.requirements.listing import explained


def names() -> Iterable[str]:
    """Return the slugs."""
    return [one.slug for one in REQUIREMENTS]


def explain(name: str) -> Explanation:
    """Return the explanation of the requirement of that slug."""
    return explained(requirement(name))
