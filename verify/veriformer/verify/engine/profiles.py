"""Profiles: examples per row, shrinking effort, and the time and memory a row may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Named amount of work.

    examples: Hypothesis examples per row (a check may ask for a multiple of it).
    shrinks: calls of the property that may be spent on making a failing example smaller.
    timeout_s: seconds after which a row is stopped and reported as ``timeout``.
    memory_gib: address space, beyond what is already mapped, that a target may take.
    """

    name: str
    examples: int
    shrinks: int
    timeout_s: float
    memory_gib: float = 8.0


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(name="quick", examples=12, shrinks=150, timeout_s=20),
        Profile(name="default", examples=80, shrinks=600, timeout_s=60),
        Profile(name="thorough", examples=2000, shrinks=3000, timeout_s=1800),
    )
}
