"""Vectors and sums of any length, for proofs that hold for all n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp


def vector(name: str) -> Any:
    """Return a real vector or matrix of unspecified size: x[i], a[i, j]."""
    return sp.IndexedBase(name, real=True)


def whole(name: str, **assumptions: bool) -> Any:
    """Return integers of unspecified count: tokens or positions, y[i]."""
    return sp.IndexedBase(name, integer=True, **assumptions)


def index(names: str) -> Any:
    """Return integer indices, each within the range of the sums and vectors that use it."""
    return sp.symbols(names, integer=True)


def dimension(name: str) -> Any:
    """Return a length: an integer of at least one."""
    return sp.Symbol(name, integer=True, positive=True)


def real(names: str) -> Any:
    """Return real numbers."""
    return sp.symbols(names, real=True)


def positive(names: str) -> Any:
    """Return positive real numbers."""
    return sp.symbols(names, positive=True)


def symbolic_sum(term: Any, i: Any, n: Any) -> Any:
    """Return Σ_{i=1}^n term."""
    return sp.Sum(term, (i, 1, n))


def sum_over(size: Any, term: Callable[[Any], Any], letter: str = "j") -> Any:
    """Return Σ over an index from 1 to `size`, a length or its name, of a term that is a function of the index."""
    i = sp.Dummy(letter, integer=True)
    return symbolic_sum(term(i), i, dimension(size) if isinstance(size, str) else size)


def ranged(**sizes: str) -> Callable[[str, Callable[[Any], Any]], Any]:
    """Return sums by letters: over(letter, term) is Σ over that letter's range, for a term that is a function of the
    index.

    sizes: the name of the length that each letter runs to. `over = ranged(i="n")`, and then `over("i", lambda i: …)`.
    """

    def over(letter: str, term: Callable[[Any], Any]) -> Any:
        return sum_over(sizes[letter], term, letter)

    return over


def delta(i: Any, j: Any) -> Any:
    """Return Kronecker's δ_ij."""
    return sp.KroneckerDelta(i, j)
