"""Identities between arrays: entry by entry, or by their inner products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veriformer.spec.proofs.provenance import entries_with_origin
from veriformer.spec.proofs.tower_arithmetic import entries


def entrywise(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the identities of the entries of two arrays of one shape; each entry keeps its origin."""
    yield from zip(entries_with_origin(left), entries_with_origin(right), strict=True)


def inner_product(a: Any, b: Any) -> Any:
    """Return Σ a ⊙ b over all entries of two arrays of one shape, for the adjoint test of a vector-Jacobian product."""
    return sum(x * y for x, y in zip(entries(a), entries(b), strict=True))
