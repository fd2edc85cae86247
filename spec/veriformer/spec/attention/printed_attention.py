"""Attention as it is printed, for any number of keys of any width: what formulas of any length are held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.indexed import sum_over

Entry = Callable[[Any, Any], Any]


def score(query: Callable[[Any], Any], key: Callable[[Any], Any], width: Any) -> Any:
    """q · k / √d_k."""
    return sum_over(width, lambda c: query(c) * key(c)) / sp.sqrt(width)


def attended(
    query: Callable[[Any], Any],
    keys: Entry,
    values: Callable[[Any], Any],
    n: Any,
    width: Any,
    sees: Callable[[Any], Any] | None = None,
) -> Any:
    """Σ_j e^{q · k_j / √d_k} v_j / Σ_j e^{q · k_j / √d_k} over n keys, or over those of them that the query sees."""

    def sums(value: Callable[[Any], Any]) -> Any:
        def term(j: Any) -> Any:
            seen = 1 if sees is None else sees(j)
            return seen * sp.exp(score(query, lambda c: keys(j, c), width)) * value(j)

        return sum_over(n, term)

    return sums(values) / sums(lambda _: 1)
