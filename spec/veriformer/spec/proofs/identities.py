"""Identities between arrays: entry by entry, or by their inner products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veriformer.spec.proofs.provenance import entries_with_origin
from veriformer.spec.proofs.tower_arithmetic import entries


def entrywise(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """The identities that make up the equality of two arrays of one shape; each entry keeps where it comes from."""
    yield from zip(entries_with_origin(left), entries_with_origin(right), strict=True)


def inner_product(a: Any, b: Any) -> Any:
    """Σ a ⊙ b over all entries of two arrays of one shape: a vector-Jacobian product shows itself as an adjoint."""
    return sum(x * y for x, y in zip(entries(a), entries(b), strict=True))
