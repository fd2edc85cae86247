"""Costs of positions: N rows of d features, n positions, H heads, n_q queries and n_k keys, w bytes per element.

FLOPs count matrix products, of which there are none. Elementwise operations count one each; what depends on the width
alone, such as the frequencies, is free.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import symbol


def rotation_operations() -> Any:
    """Four products and two sums for each of d / 2 pairs of N rows: 3 N d."""
    return 3 * symbol("N") * symbol("d")


def rotation_operations_by_matrix() -> Any:
    """Return the operations as N products of a vector with a d × d matrix, all entries used: N d (2 d − 1)."""
    d = symbol("d")
    return symbol("N") * d * (2 * d - 1)


def _sinusoidal() -> tuple[Any, ...]:
    table = symbol("n") * symbol("d")
    # One product per angle, a sine and a cosine of each; the angles are kept until then.
    return 3 * table / 2, table, table / 2, 0


def _rope() -> tuple[Any, ...]:
    # The table of cosines and sines is shared by all rows at a position.
    return rotation_operations(), 2 * symbol("N") * symbol("d"), symbol("n") * symbol("d"), 0


def _alibi() -> tuple[Any, ...]:
    pairs = symbol("H") * symbol("n_q") * symbol("n_k")
    return pairs, pairs, 0, 0


def _t5() -> tuple[Any, ...]:
    table = symbol("N") * symbol("H")
    return 0, table + symbol("H") * symbol("n_q") * symbol("n_k"), 0, table


def _learned() -> tuple[Any, ...]:
    rows, table = symbol("N") * symbol("d"), symbol("n") * symbol("d")
    return rows, 2 * rows + table, 0, table


# Elementwise operations, elements read or written, extra elements alive, parameters. T5's N are its buckets.
_OPERATIONS = {"sinusoidal": _sinusoidal, "rope": _rope, "alibi": _alibi, "t5": _t5, "learned": _learned}
_NAMES = ("FLOPs", "other operations", "bytes", "peak extra bytes", "parameters")


def _of(operation: str) -> dict[str, Any]:
    other, moved, kept, parameters = _OPERATIONS[operation]()
    w = symbol("w")
    return dict(zip(_NAMES, map(sp.sympify, (0, other, w * moved, w * kept, parameters)), strict=True))


def position_costs(operation: str) -> dict[str, Callable[[], Any]]:
    """The costs of one way to tell positions, each worked out when it is asked for: records are made without SymPy."""
    return {name: partial(lambda name: _of(operation)[name], name) for name in _NAMES}
