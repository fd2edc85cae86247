"""Formulas evaluated at arrays of any length: shapes are symbols, and an array is its entry at any indices.

What a formula computes comes out as the printed statements are written, with sums of symbolic length, so that the two
are compared for all sizes at once. Indices count from 1. A maximum along an axis is a free number, one for each of the
remaining indices: what is proved holds for any number in its place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import count, product
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.any_size import AnySize, Size, broadcast_shape, constant, entry_at, entrywise
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.arithmetic.vocabulary import Arithmetic, Array, Axis
from veriformer.spec.proofs.indexed import dimension, vector


class AnyLength(Arithmetic):
    """Evaluate a formula for all sizes of its arrays.

    What depends on the sizes being known raises NotImplementedError, and so do the few ways of indexing and reshaping
    that no formula needs.
    """

    of_symbols = True

    def __init__(self) -> None:
        self._maxima = count(1)

    def __repr__(self) -> str:
        return "AnyLength()"

    def array(self, name: str, *shape: Size) -> Array:
        """Return an array of real letters: name[i, j]."""
        letters = vector(name)
        return self._of(AnySize(shape, lambda *at: letters[at] if at else sp.Symbol(name, real=True)))

    def asarray(self, x: Any) -> Any:
        """Take a number, an expression, or exactly known numbers; arrays of this arithmetic pass unchanged."""
        if isinstance(x, Array):
            return x
        if isinstance(x, AnySize):
            return self._of(x)
        if np.ndim(x):
            raise NotImplementedError("arrays whose size is known")
        return self._of(constant(x))

    def apply(self, operation: str, /, *operands: Any, **options: Any) -> Any:
        """Carry out a computing operation of the vocabulary, given by name."""
        values = [self.asarray(x).value for x in operands]
        if operation in ("sum", "max"):
            return self._reduced(operation, values[0], **options)
        if operation == "matmul":
            return self._product(*values)
        if operation not in _ENTRYWISE:
            raise NotImplementedError(f"{operation} of arrays of any length")
        return self._of(entrywise(_ENTRYWISE[operation](), *values))

    def rearrange(self, move: Callable[..., Any], /, *arrays: Any) -> Any:
        """Apply `move`, whose functions of NumPy take arrays of any size."""
        return self._of(move(*(self.asarray(x).value for x in arrays)))

    def where(self, mask: Any, a: Any, b: Any) -> Any:
        """Choose between a and b: by one truth value for all entries, by a mask, or by an array of zeros and ones."""
        if isinstance(mask, Array):
            return mask * a + (1 - mask) * b
        if isinstance(mask, AnySize):
            return self._of(entrywise(_indicators().chosen, mask, self.asarray(a).value, self.asarray(b).value))
        if np.ndim(mask):
            raise NotImplementedError("masks whose size is known")
        return self.asarray(a if bool(mask) else b)

    def take_along(self, x: Any, indices: Any, axis: int) -> Any:
        """Return the entries at `indices`, counted from 0, along `axis`."""
        axis %= x.ndim

        def read(*at: Any) -> Any:
            return x.value.entry(*at[:axis], indices.entry(*at) + 1, *at[axis + 1 :])

        return self._of(AnySize(indices.shape, read))

    def power(self, x: Any, n: Any) -> Any:
        """Return x^n where n is a letter: the hypothesis of the induction by which the smaller powers are powers."""
        return (
            self.rearrange(lambda p: entrywise(lambda e: e**n, p), x)
            if getattr(n, "is_Symbol", False)
            else super().power(x, n)
        )

    def _of(self, x: AnySize) -> Array:
        return Array(self, x)  # type: ignore[arg-type]

    def _reduced(self, operation: str, x: AnySize, axis: Axis = None, keepdims: bool = False) -> Array:
        axes = {k % x.ndim for k in (range(x.ndim) if axis is None else np.atleast_1d(axis))}
        kept = [k for k in range(x.ndim) if k not in axes]
        name = f"m{next(self._maxima)}"
        inner = {k: _bound() if x.shape[k] != 1 else 1 for k in axes}

        def entry(*at: Any) -> Any:
            outer = dict(zip(kept, at if not keepdims else [at[k] for k in kept], strict=True))
            term = x.entry(*({**outer, **inner}[k] for k in range(x.ndim)))
            if operation == "max":
                return _largest(name, term, list(outer.values()))
            for k, j in inner.items():
                term = _indicators().summed(term, j, x.shape[k]) if x.shape[k] != 1 else term
            return term

        shape = [1 if k in axes else n for k, n in enumerate(x.shape)] if keepdims else [x.shape[k] for k in kept]
        return self._of(AnySize(tuple(shape), entry))

    def _product(self, a: AnySize, b: AnySize) -> Array:
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"matmul: expected {a.shape[-1]} rows, got {b.shape[-2]}")

        j, rules = _bound(), _indicators()

        def entry(*at: Any) -> Any:
            first = entry_at(AnySize(a.shape[:-2], lambda *lead: a.entry(*lead, at[-2], j)), at[:-2])
            second = entry_at(AnySize(b.shape[:-2], lambda *lead: b.entry(*lead, j, at[-1])), at[:-2])
            return rules.summed(rules.product(first, second), j, a.shape[-1])

        return self._of(AnySize((*broadcast_shape([a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-1]), entry))


def entry(*indices: Any) -> Callable[[Any], Any]:
    """Return the function that takes the entry of an array of any length at these indices, one for each axis."""

    def of(x: Any) -> Any:
        if x.ndim != len(indices):
            raise ValueError(f"entry: expected an array of {len(indices)} axes, got the shape {x.shape}")
        return x.value.entry(*indices)

    return of


def whole_numbers(letters: Any, *shape: Size | str) -> AnySize:
    """Return integers that formulas take as exactly known, such as tokens: letters[i], from `indexed.whole`.

    shape: lengths, or their names.
    """
    return AnySize(_lengths(shape), lambda *at: letters[at], np.dtype(int))


def mask(name: str, *shape: Size | str) -> AnySize:
    """Return an arbitrary mask: `seen(name)(i, j)` is 1 or 0. shape: lengths, or their names."""
    return AnySize(_lengths(shape), seen(name), np.dtype(bool))


def seen(name: str) -> Callable[..., Any]:
    """Return the entries of the mask with this name, as a function of their indices."""
    return lambda *at: _indicators().Shown(vector(name), *at)


def abbreviated(e: Any, array: Array, lead: tuple[Any, ...], letter: Callable[..., Any]) -> Any:
    """Replace the entries of an array in an expression by letter(*lead, …), at any free and bound indices.

    Whatever is proved of the result holds for the entries that the letters stand for.
    """
    at = [sp.Dummy(integer=True) for _ in range(array.ndim - len(lead))]
    known = entry(*lead, *at)(array)
    labels = {a.base.label for a in e.atoms(sp.Indexed)}
    indices = [s for s in e.atoms(sp.Symbol) - labels if s.is_integer]
    places = [dict(zip(at, chosen, strict=True)) for chosen in product(indices, repeat=len(at))]
    return e.xreplace({known.xreplace(p): letter(*lead, *p.values()) for p in places})


def picks(xp: AnyLength, *axes: tuple[Size, Any]) -> Array:
    """Return a column [product of the sizes, 1] that is 1 at one index, else 0; of a joined axis, parts by (size,
    index).
    """
    rows = AnySize(tuple(n for n, _ in axes), lambda *at: sp.Mul(*map(sp.KroneckerDelta, at, (i for _, i in axes))))
    return Array(xp, np.reshape(rows, (sp.Mul(*rows.shape), 1)))  # type: ignore[call-overload]


def place(block: Any, item: Any, width: Any) -> Any:
    """Return the index (block − 1) · width + item, for item ≤ width: entry `item` of a block of `width` entries."""
    return _indicators().Place(block, item, width)


def at_least_zero(x: Any) -> Any:
    """Return 1 where the integer x is at least 0, else 0."""
    return _indicators().AtLeastZero(x)


def _lengths(shape: tuple[Size | str, ...]) -> tuple[Size, ...]:
    return tuple(dimension(n) if isinstance(n, str) else n for n in shape)


def _bound() -> Any:
    return sp.Dummy("j", integer=True, positive=True)


def _largest(name: str, term: Any, at: list[Any]) -> Any:
    """Return a free letter for the largest of terms, positive for magnitudes: where all are 0, no formula divides."""
    letters = {"positive": True} if term.is_nonnegative else {"real": True}
    return sp.IndexedBase(name, **letters)[tuple(at)] if at else sp.Symbol(name, **letters)


def _of_sympy(name: str) -> Callable[[], Callable[..., Any]]:
    return lambda: getattr(sp, name)


def _indicators() -> Any:
    """Import the module of indicators, which imports SymPy, at first use."""
    from veriformer.spec.arithmetic import indicators

    return indicators


_ENTRYWISE: dict[str, Callable[[], Callable[..., Any]]] = {
    **{name: _of_sympy(name) for name in ("sqrt", "exp", "log", "tanh", "erf", "sin", "cos")},
    "absolute": _of_sympy("Abs"),
    "maximum": _of_sympy("Max"),
    "minimum": _of_sympy("Min"),
    "negative": lambda: operator.neg,
    "add": lambda: operator.add,
    "subtract": lambda: operator.sub,
    "multiply": lambda: _indicators().product,
    "divide": lambda: lambda a, b: _indicators().product(a, 1 / b),
}
"""By the operation's name; SymPy's functions are looked up when they are called, since it is slow to import."""
