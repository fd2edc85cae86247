"""Costs of a comparison of vectors: a query and N keys of width d, w bytes per element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import symbol

Costs = dict[str, Callable[[], Any]]


def _entries() -> Any:
    return symbol("N") * symbol("d")


def comparison(operations: int) -> Costs:
    """Return the costs of this many operations on each entry of the keys, which are read once, as the query is."""
    return {
        "FLOPs": lambda: sp.S.Zero,
        "other operations": lambda: operations * _entries(),
        "bytes": lambda: symbol("w") * (_entries() + symbol("d") + symbol("N")),
        "parameters": lambda: sp.S.Zero,
    }


SEARCH: Costs = {
    "FLOPs": lambda: 2 * _entries(),
    "comparisons": lambda: symbol("N") - 1,
    "bytes": lambda: symbol("w") * (_entries() + symbol("d")),
    "parameters": lambda: sp.S.Zero,
}
