"""Inner products of arrays, by which a vector-Jacobian product shows itself as an adjoint."""

from __future__ import annotations

from typing import Any

from veriformer.spec.staged import entries


def inner(a: Any, b: Any) -> Any:
    """Σ a ⊙ b over all entries of two arrays of one shape."""
    return sum(x * y for x, y in zip(entries(a), entries(b), strict=True))
