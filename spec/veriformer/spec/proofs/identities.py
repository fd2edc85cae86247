"""Identities between arrays: entry by entry, with one side unevaluated, or by their inner products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veriformer.spec.proofs.published import unevaluated
from veriformer.spec.proofs.tower_arithmetic import entries


def entrywise(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """The identities that make up the equality of two arrays of one shape."""
    yield from zip(entries(left), entries(right), strict=True)


def unevaluated_pairs(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """The same with the left sides unevaluated, where SymPy might make both sides one expression."""
    for a, b in entrywise(left, right):
        yield unevaluated(a), b


def inner_product(a: Any, b: Any) -> Any:
    """Σ a ⊙ b over all entries of two arrays of one shape: a vector-Jacobian product shows itself as an adjoint."""
    return sum(x * y for x, y in entrywise(a, b))
