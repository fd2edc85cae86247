"""Identities whose two sides SymPy might make one expression before the prover has seen them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veriformer.spec.optimization.printed import computed
from veriformer.spec.staged import entries


def unfolded(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """The identities of two arrays of one shape, with the left sides kept unfolded."""
    for a, b in zip(entries(left), entries(right), strict=True):
        yield computed(a), b
