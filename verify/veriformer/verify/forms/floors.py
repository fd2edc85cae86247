"""Lowest and first rates, and factors, of schedules: the contract has none, so they are varied beside it."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

FIXED: Mapping[str, float] = {"lowest": 0.0, "lowest_share": 0.0, "first": 0.0, "factor": 1.0}
"""Arguments beyond the contract, by the value that leaves each out."""

SHARE = 0.25
"""Of the largest rate: what the lowest and the first rate are where they are varied."""


def rate_of_all(rate: Callable[[Mapping[str, Any]], Any], given: Mapping[str, Any], roles: Collection[str]) -> Any:
    """Return a rate without a floor, which the rates with one agree with; else what such a rate says it would be.

    rate: from arguments by role to the rate. roles: those that the code has.
    """
    plain, largest = rate({**FIXED, **given}), given.get("max_lr", 1.0)
    if not isinstance(plain, int | float) or not largest:
        return plain
    for role in (role for role in FIXED if role in roles):
        value = {"lowest_share": SHARE, "factor": 1 / SHARE}.get(role, SHARE * largest)
        with contextlib.suppress(Exception):  # the code refuses such a value
            found = float(rate({**FIXED, **given, role: value}))
            if not any(_equal(found, one, largest) for one in _explained(role, plain, largest, given)):
                return _without(role, found, largest)
    return plain


def _explained(role: str, plain: float, largest: float, given: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the rates that a right schedule may have: its floor under the cosine, or under all that is lower."""
    if role == "factor":
        return (plain / SHARE,)
    rises = given["step"] <= given.get("warmup_steps", 0)
    floor = SHARE * largest
    scaled = floor + (1 - SHARE) * plain
    if role == "first":
        return (scaled if rises else plain,)
    return (scaled, max(floor, plain), *((plain,) if rises else ()))


def _without(role: str, found: float, largest: float) -> float:
    """Return the rate without a floor that would give this one."""
    return found * SHARE if role == "factor" else (found - SHARE * largest) / (1 - SHARE)


def _equal(found: float, expected: float, largest: float) -> bool:
    """Return whether two rates agree in half of the digits."""
    return bool(abs(found - expected) <= math.sqrt(sys.float_info.epsilon) * abs(largest))
