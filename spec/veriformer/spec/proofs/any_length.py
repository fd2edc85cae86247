"""Formulas evaluated at arrays of any length: shapes are symbols, and an array is its entry at any indices.

What a formula computes comes out as the printed statements are written, with sums of symbolic length, so that the two
are compared for all sizes at once. Indices count from 1. A maximum along an axis is a free number, one for each of the
remaining indices: what is proved holds for any number in its place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.arithmetic.vocabulary import Arithmetic, Array, Axis
from veriformer.spec.proofs.indexed import symbolic_sum, vector

Size = Any
"""A positive integer, or a SymPy symbol of one."""


@dataclass(frozen=True, eq=False)
class Family:
    """A shape, and the entry at indices from 1."""

    shape: tuple[Size, ...]
    entry: Callable[..., Any]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class AnyLength(Arithmetic):
    """Evaluate a formula for all sizes of its arrays.

    What depends on the sizes being known raises NotImplementedError: masks, indices, and most ways to reshape.
    """

    def __init__(self) -> None:
        self._maxima = count(1)

    def __repr__(self) -> str:
        return "AnyLength()"

    def array(self, name: str, *shape: Size) -> Array:
        """An array of real letters: name[i, j]."""
        letters = vector(name)
        return self._of(shape, lambda *at: letters[at] if at else sp.Symbol(name, real=True))

    def asarray(self, x: Any) -> Any:
        """Take a number or an expression; arrays of this arithmetic pass unchanged."""
        if isinstance(x, Array):
            return x
        if np.ndim(x):
            raise NotImplementedError("arrays whose size is known")
        return self._of((), lambda: sp.sympify(x))

    def apply(self, operation: str, /, *operands: Any, **options: Any) -> Any:
        """Carry out a computing operation of the vocabulary, given by name."""
        families = [self.asarray(x).value for x in operands]
        if operation in ("sum", "max"):
            return self._reduced(operation, families[0], **options)
        if operation == "matmul":
            return self._product(*families)
        function = _ENTRYWISE[operation]()
        shape = _broadcast([f.shape for f in families])
        return self._of(shape, lambda *at: function(*(_at(f, at) for f in families)))

    def rearrange(self, move: Callable[..., Any], /, *arrays: Any) -> Any:
        """Refuse: entries of arrays whose size is not known cannot be moved one by one."""
        raise NotImplementedError("rearranging entries of arrays of any length")

    def where(self, mask: Any, a: Any, b: Any) -> Any:
        """The one or the other: by one truth value that is known for all entries, or by an array of zeros and ones."""
        if isinstance(mask, Array):
            return mask * a + (1 - mask) * b
        if np.ndim(mask):
            raise NotImplementedError("masks whose size is known")
        return self.asarray(a if bool(mask) else b)

    def swapaxes(self, x: Any, i: int, j: int) -> Any:
        """Exchange the axes i and j."""
        order = list(range(x.ndim))
        order[i], order[j] = order[j], order[i]
        return self._of([x.shape[k] for k in order], lambda *at: x.value.entry(*(at[k] for k in np.argsort(order))))

    def reshape(self, x: Any, shape: Sequence[Size]) -> Any:
        """Leave out or put in axes of length 1; −1 stands for the only axis."""
        family, kept = x.value, [n for n in x.shape if n != 1]
        target = kept if tuple(shape) == (-1,) and len(kept) == 1 else list(shape)
        if [n for n in target if n != 1] != kept:
            raise NotImplementedError(f"from shape {x.shape} to {tuple(shape)}")

        def entry(*at: Any) -> Any:
            rest = iter([i for i, n in zip(at, target, strict=True) if n != 1])
            return family.entry(*(1 if n == 1 else next(rest) for n in family.shape))

        return self._of(target, entry)

    def concat(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """A single array, as it is."""
        if len(arrays) != 1:
            raise NotImplementedError("joining arrays of any length")
        return arrays[0]

    def _of(self, shape: Sequence[Size], entry: Callable[..., Any]) -> Array:
        return Array(self, Family(tuple(shape), entry))  # type: ignore[arg-type]

    def _reduced(self, operation: str, x: Family, axis: Axis = None, keepdims: bool = False) -> Array:
        axes = {k % x.ndim for k in (range(x.ndim) if axis is None else np.atleast_1d(axis))}
        kept = [k for k in range(x.ndim) if k not in axes]
        name = f"m{next(self._maxima)}"

        def entry(*at: Any) -> Any:
            outer = dict(zip(kept, at if not keepdims else [at[k] for k in kept], strict=True))
            inner = {k: sp.Dummy("j", integer=True) if x.shape[k] != 1 else 1 for k in axes}
            term = x.entry(*({**outer, **inner}[k] for k in range(x.ndim)))
            if operation == "max":
                return _largest(name, term, list(outer.values()))
            for k, j in inner.items():
                term = symbolic_sum(term, j, x.shape[k]) if x.shape[k] != 1 else term
            return term

        shape = [1 if k in axes else n for k, n in enumerate(x.shape)] if keepdims else [x.shape[k] for k in kept]
        return self._of(shape, entry)

    def _product(self, a: Family, b: Family) -> Array:
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"matmul: expected {a.shape[-1]} rows, got {b.shape[-2]}")

        def entry(*at: Any) -> Any:
            j = sp.Dummy("j", integer=True)
            first = _at(Family(a.shape[:-2], lambda *lead: a.entry(*lead, at[-2], j)), at[:-2])
            second = _at(Family(b.shape[:-2], lambda *lead: b.entry(*lead, j, at[-1])), at[:-2])
            return symbolic_sum(first * second, j, a.shape[-1])

        return self._of((*_broadcast([a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-1]), entry)


def entry(*indices: Any) -> Callable[[Any], Any]:
    """The entry of an array of any length at these indices, as a function of the array."""
    return lambda x: x.value.entry(*indices)


def _largest(name: str, term: Any, at: list[Any]) -> Any:
    """A free number for the largest of terms; of magnitudes it is positive: where all are 0, no formula divides."""
    letters = {"positive": True} if term.is_nonnegative else {"real": True}
    return sp.IndexedBase(name, **letters)[tuple(at)] if at else sp.Symbol(name, **letters)


def _broadcast(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    found: list[Size] = []
    for sizes in zip_longest(*(s[::-1] for s in shapes), fillvalue=1):
        longer = {n for n in sizes if n != 1}
        if len(longer) > 1:
            raise ValueError(f"shapes: expected one size for each axis, got {shapes}")
        found.insert(0, longer.pop() if longer else 1)
    return tuple(found)


def _at(x: Family, at: tuple[Any, ...]) -> Any:
    """The entry that stands at these indices once the array is broadcast."""
    own = at[len(at) - x.ndim :]
    return x.entry(*(1 if n == 1 else i for n, i in zip(x.shape, own, strict=True)))


def _of_sympy(name: str) -> Callable[[], Callable[..., Any]]:
    return lambda: getattr(sp, name)


_ENTRYWISE: dict[str, Callable[[], Callable[..., Any]]] = {
    **{name: _of_sympy(name) for name in ("sqrt", "exp", "log", "tanh", "erf", "sin", "cos")},
    "absolute": _of_sympy("Abs"),
    "maximum": _of_sympy("Max"),
    "minimum": _of_sympy("Min"),
    "negative": lambda: operator.neg,
    "add": lambda: operator.add,
    "subtract": lambda: operator.sub,
    "multiply": lambda: operator.mul,
    "divide": lambda: operator.truediv,
}
"""By the operation's name; SymPy's functions are looked up when they are called, since it is slow to import."""
