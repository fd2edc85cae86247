"""Costs of choosing tokens: N rows of d logits each, w bytes per element, in comparisons where nothing is added.

A beam keeps b hypotheses for T rounds over a vocabulary of V; calibration has M bins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import ROWWISE, rowwise, symbol

Costs = dict[str, Callable[[], Any]]


def _entries() -> Any:
    return symbol("N") * symbol("d")


def _none() -> Any:
    return sp.S.Zero


def _bytes(arrays: int) -> Callable[[], Any]:
    return lambda: arrays * symbol("w") * _entries()


def temperature_costs() -> Costs:
    """Return the costs of softmax and one division, each worked out when it is asked for: records are made without
    SymPy.
    """
    return {name: partial(lambda name: rowwise(6, kept=2)[name], name) for name in ROWWISE}


GREEDY: Costs = {
    "FLOPs": _none,
    "comparisons": lambda: symbol("N") * (symbol("d") - 1),
    "bytes": lambda: symbol("w") * _entries() + 8 * symbol("N"),
    "parameters": _none,
}

TOP_K: Costs = {
    "FLOPs": _none,
    "comparisons at most, with a heap of k": lambda: _entries() * sp.log(symbol("k") + 1, 2),
    "bytes": _bytes(2),
    "peak extra bytes": lambda: symbol("N") * symbol("k") * (symbol("w") + 8),
    "parameters": _none,
}

TOP_P: Costs = {
    "FLOPs": _none,
    "comparisons at most, sorted": lambda: _entries() * sp.log(symbol("d") + 1, 2),
    "other operations": lambda: 7 * _entries(),  # softmax, the running sum, the comparison with p
    "bytes": _bytes(2),
    "peak extra bytes": lambda: _entries() * (2 * symbol("w") + 8),
    "parameters": _none,
}

CALIBRATION: Costs = {
    "FLOPs": _none,
    "comparisons": lambda: symbol("N") * (symbol("d") - 1 + symbol("M")),
    "other operations": lambda: 3 * symbol("N") + 5 * symbol("M"),
    "bytes": lambda: symbol("w") * _entries() + 8 * symbol("N"),
    "peak extra bytes": lambda: 3 * symbol("w") * symbol("M"),
    "parameters": _none,
}

BEAM: Costs = {
    "rows that the model reads, at most": lambda: symbol("b") * symbol("T"),
    "continuations that are compared, at most": lambda: symbol("b") * symbol("T") * symbol("V"),
    "hypotheses of an exhaustive search": lambda: symbol("V") ** symbol("T"),
    "peak extra bytes": lambda: 8 * symbol("b") * symbol("T") + symbol("w") * symbol("b") * symbol("V"),
    "parameters": _none,
}
