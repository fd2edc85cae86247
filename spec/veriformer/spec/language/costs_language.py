"""Costs of embeddings, heads and segmentation: N tokens of width d, a vocabulary of V, w bytes per element.

FLOPs count matrix products. A lookup has none: as a product with one-hot rows it would have 2 N V d.
A text has n bytes or code points; M merges are learned; no piece is longer than m.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import symbol


def _embedding() -> tuple[Any, ...]:
    n, d, vocabulary = symbol("N"), symbol("d"), symbol("V")
    return 0, 2 * n * d, vocabulary * d


def _head() -> tuple[Any, ...]:
    n, d, vocabulary = symbol("N"), symbol("d"), symbol("V")
    return 2 * n * d * vocabulary, n * d + vocabulary * d + n * vocabulary, vocabulary * d


# FLOPs, elements that move at least, parameters.
_OPERATIONS = {"token_embedding": _embedding, "lm_head": _head}


def _of(operation: str) -> dict[str, Any]:
    flops, moved, parameters = _OPERATIONS[operation]()
    return {"FLOPs": sp.sympify(flops), "bytes": symbol("w") * moved, "parameters": parameters}


def language_costs(operation: str) -> dict[str, Callable[[], Any]]:
    """The costs of a lookup or a head, each worked out when it is asked for: records are made without SymPy."""
    return {name: partial(lambda name: _of(operation)[name], name) for name in ("FLOPs", "bytes", "parameters")}


def pairs_scanned() -> Any:
    """A scan of i pieces looks at i − 1 pairs, and every merge leaves fewer: 1 + 2 + … + (n − 1)."""
    n = symbol("n")
    return n * (n - 1) / 2


def pieces_considered() -> Any:
    """Up to m ≤ n pieces end at each place, fewer at the first ones: n m − m (m − 1) / 2."""
    n, m = symbol("n"), symbol("m")
    return n * m - m * (m - 1) / 2


BYTE_PAIRS: dict[str, Callable[[], Any]] = {
    "pairs looked at in encoding, at most": pairs_scanned,
    "pairs counted in training, at most": lambda: symbol("M") * (symbol("n") - 1),
    "merges kept": lambda: symbol("M"),
}

UNIGRAM: dict[str, Callable[[], Any]] = {
    "pieces considered": pieces_considered,
    "segmentations of an exhaustive search": lambda: sp.Integer(2) ** (symbol("n") - 1),
    "numbers kept": lambda: 2 * (symbol("n") + 1),
}
