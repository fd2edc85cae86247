"""Arrays of any size, as NumPy's functions see them: a shape of numbers and letters, and the entry at any indices.

Masks and indices of formulas are such arrays where sizes are not known. A mask holds indicators, which are 1 or 0.
Indices of entries count from 1; the numbers that an array of indices holds count from 0, as the formulas do.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate, zip_longest
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp

Size = Any
"""A positive integer, or a SymPy expression of one."""


_ANY = np.dtype(object)


@dataclass(frozen=True, eq=False)
class AnySize:
    """A shape, and the entry at indices from 1."""

    shape: tuple[Size, ...]
    entry: Callable[..., Any]
    dtype: Any = _ANY

    def __post_init__(self) -> None:
        # Entries are asked for again and again, and what they are made of anew each time.
        object.__setattr__(self, "entry", cache(self.entry))

    # NumPy's own operators must leave the right-hand side to us.
    __array_ufunc__ = None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of entries."""
        return math.prod(self.shape)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function.__name__ not in _FUNCTIONS:
            raise NotImplementedError(f"{function.__name__} of arrays of any size")
        return _FUNCTIONS[function.__name__](*arguments, **options)

    def __getitem__(self, index: Any) -> AnySize:
        return _indexed(self, index if isinstance(index, tuple) else (index,))

    def __add__(self, other: Any) -> AnySize:
        return entrywise(lambda a, b: a + b, self, other)

    def __sub__(self, other: Any) -> AnySize:
        return entrywise(lambda a, b: a - b, self, other)

    def __mul__(self, other: Any) -> AnySize:
        return entrywise(lambda a, b: a * b, self, other)

    __rmul__ = __mul__

    def __le__(self, other: Any) -> AnySize:
        return entrywise(lambda a, b: _at_least_zero(b - a), self, other)

    def __gt__(self, other: Any) -> AnySize:
        return entrywise(lambda a, b: _at_least_zero(a - b - 1), self, other)

    def __eq__(self, other: object) -> AnySize:  # type: ignore[override]
        return entrywise(_equal, self, other)

    def __ne__(self, other: object) -> AnySize:  # type: ignore[override]
        return entrywise(lambda a, b: 1 - _equal(a, b), self, other)

    def __and__(self, other: Any) -> AnySize:
        return self.__mul__(other)

    def __invert__(self) -> AnySize:
        return entrywise(lambda a: 1 - a, self)

    def ravel(self) -> AnySize:
        """Return all entries in one axis."""
        return _reshape(self, (self.size,))

    def astype(self, dtype: Any) -> AnySize:
        """Change the dtype alone: an indicator is a number already."""
        return replace(self, dtype=np.dtype(dtype))

    def any(self, axis: int, keepdims: bool = False) -> AnySize:
        """Return whether an entry along the axis is 1; an axis of any size has at least one entry."""
        from veriformer.spec.arithmetic.indicators import Some, summed

        return self._reduced(lambda term, j, n: Some(summed(term, j, n)) if term.has(j) else term, axis, keepdims)

    def sum(self) -> Any:
        """Return the sum of all entries of one axis."""
        from veriformer.spec.arithmetic.indicators import summed

        return self._reduced(lambda term, j, n: summed(sp.sympify(term), j, n), 0, False).entry()

    def _reduced(self, reduce: Callable[..., Any], axis: int, keepdims: bool) -> AnySize:
        axis %= self.ndim

        j = sp.Dummy("j", integer=True, positive=True)

        def entry(*at: Any) -> Any:
            rest = at[:axis], at[axis + keepdims :]
            return reduce(sp.sympify(self.entry(*rest[0], j, *rest[1])), j, self.shape[axis])

        return AnySize((*self.shape[:axis], *[1] * keepdims, *self.shape[axis + 1 :]), entry)


def counting(n: Size) -> Any:
    """Return 0, 1, …, n − 1: a NumPy array where n is a number, else an array of any size."""
    if _known(n):
        return np.arange(n)
    from veriformer.spec.arithmetic.indicators import as_number

    return AnySize((n,), lambda i: as_number(i) - 1, np.dtype(int))


def everywhere(*shape: Size) -> Any:
    """Return a mask that is true throughout."""
    return (
        np.ones(shape, dtype=bool) if all(map(_known, shape)) else AnySize(shape, lambda *_: sp.S.One, np.dtype(bool))
    )


def as_indices(x: Any) -> Any:
    """Return exactly known numbers as an array; arrays of any size pass unchanged."""
    return x if isinstance(x, AnySize) else np.asarray(x)


def largest(m: Any, n: Any) -> Any:
    """Return the larger of two integers, as a Python int where both are known."""
    return max(int(m), int(n)) if _known(m) and _known(n) else sp.Max(m, n)


def ratio(m: Any, n: Any) -> Any:
    """Return m / n of integers, exactly."""
    return Fraction(m, n) if _known(m) and _known(n) else m / n


def _known(n: Any) -> bool:
    return isinstance(n, int | np.integer)


def entrywise(function: Callable[..., Any], *operands: Any) -> AnySize:
    """Apply a function to the entries of arrays of any size and of numbers, which are broadcast."""
    arrays = [x if isinstance(x, AnySize) else constant(x) for x in operands]
    shape = broadcast_shape([x.shape for x in arrays])
    return AnySize(shape, lambda *at: function(*(entry_at(x, at) for x in arrays)))


def broadcast_shape(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """Return the shape to which arrays of these shapes broadcast."""
    found: list[Size] = []
    for sizes in zip_longest(*(s[::-1] for s in shapes), fillvalue=1):
        longer = {n for n in sizes if n != 1}
        if len(longer) > 1:
            raise ValueError(f"shapes: expected one size for each axis, got {shapes}")
        found.insert(0, longer.pop() if longer else 1)
    return tuple(found)


def entry_at(x: AnySize, at: Sequence[Any]) -> Any:
    """Return the entry at these indices of the broadcast array."""
    own = at[len(at) - x.ndim :]
    return x.entry(*(1 if n == 1 else i for n, i in zip(x.shape, own, strict=True)))


def constant(x: Any) -> AnySize:
    """Return a single number or expression as an array; a float as the rational number that it is."""
    if np.ndim(x):
        raise NotImplementedError("arrays whose size is known among arrays of any size")
    number = x.item() if isinstance(x, np.generic | np.ndarray) else x
    exact = Fraction(number) if isinstance(number, float) and math.isfinite(number) else number
    return AnySize((), lambda: sp.sympify(exact))


def _equal(a: Any, b: Any) -> Any:
    (up, a), (down, b) = (sp.sympify(x).as_coeff_Add() for x in (a, b))
    return sp.KroneckerDelta(b, a + up - down) if b.is_Symbol else sp.KroneckerDelta(a, b + down - up)


def _at_least_zero(x: Any) -> Any:
    from veriformer.spec.arithmetic.indicators import AtLeastZero

    return AtLeastZero(sp.expand(x))


def _where(mask: Any, a: Any, b: Any) -> AnySize:
    from veriformer.spec.arithmetic.indicators import chosen

    return entrywise(chosen, mask, a, b)


def _swapaxes(x: AnySize, i: int, j: int) -> AnySize:
    order = list(range(x.ndim))
    order[i], order[j] = order[j], order[i]
    back = [order.index(k) for k in range(x.ndim)]
    return replace(x, shape=tuple(x.shape[k] for k in order), entry=lambda *at: x.entry(*(at[k] for k in back)))


def _broadcast_to(x: AnySize, shape: Sequence[Size]) -> AnySize:
    if broadcast_shape([x.shape, tuple(shape)]) != tuple(shape):
        raise ValueError(f"shape: expected what {x.shape} can be broadcast to, got {tuple(shape)}")
    return replace(x, shape=tuple(shape), entry=lambda *at: entry_at(x, at))


def _repeat(x: AnySize, n: Size, axis: int) -> AnySize:
    from veriformer.spec.arithmetic.indicators import Block

    if n == 1:
        return x
    shape = (*x.shape[:axis], x.shape[axis] * n, *x.shape[axis + 1 :])
    return replace(x, shape=shape, entry=lambda *at: x.entry(*at[:axis], Block(at[axis], n), *at[axis + 1 :]))


def _concatenate(arrays: Sequence[AnySize], axis: int = 0) -> AnySize:
    from veriformer.spec.arithmetic.indicators import chosen

    if len(arrays) == 1:
        return arrays[0]
    *most, last = arrays
    first = _concatenate(most, axis)
    axis %= first.ndim
    joint = first.shape[axis]

    def entry(*at: Any) -> Any:
        before = _at_least_zero(joint - at[axis])

        def part(x: AnySize, past: Any) -> Any:
            return x.entry(*at[:axis], at[axis] - past, *at[axis + 1 :])

        if before.is_Integer:
            return part(first, 0) if before else part(last, joint)
        return chosen(before, part(first, 0), part(last, joint))

    return AnySize((*first.shape[:axis], joint + last.shape[axis], *first.shape[axis + 1 :]), entry)


def _stack(arrays: Sequence[AnySize], axis: int = 0) -> AnySize:
    ndim, shape = arrays[0].ndim, arrays[0].shape
    axis %= ndim + 1

    def entry(*at: Any) -> Any:
        rest = (*at[:axis], *at[axis + 1 :])
        return sum(sp.KroneckerDelta(at[axis], k) * x.entry(*rest) for k, x in enumerate(arrays, 1))

    return AnySize((*shape[:axis], len(arrays), *shape[axis:]), entry)


def _reshape(x: AnySize, shape: Sequence[Size]) -> AnySize:
    shape = tuple(shape)
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        shape = tuple(math.prod(x.shape) / known if n == -1 else n for n in shape)
    pieces = list(_pieces([n for n in x.shape if n != 1], [n for n in shape if n != 1]))

    def entry(*at: Any) -> Any:
        left = [i for i, n in zip(at, shape, strict=True) if n != 1]
        found: list[Any] = []
        for taken, piece in pieces:
            found += piece(left[:taken])
            del left[:taken]
        rest = iter(found)
        return x.entry(*(1 if n == 1 else next(rest) for n in x.shape))

    return replace(x, shape=shape, entry=entry)


def _pieces(old: list[Size], new: list[Size]) -> Iterator[tuple[int, Callable[[list[Any]], list[Any]]]]:
    """Yield, from the left, how many new indices make the next old ones, and the function that makes them.

    Axes are split or joined; where neither is enough they are joined and then split.
    """
    from veriformer.spec.arithmetic.indicators import Block, Place, Within

    def cut(at: list[Any], sizes: list[Size]) -> list[Any]:
        """Return the indices into several old axes for one new index."""
        (c,) = at
        found: list[Any] = []
        for n in reversed(sizes[1:]):
            found.insert(0, Within(c, n))
            c = Block(c, n)
        return [c, *found]

    def joined(at: list[Any], sizes: list[Size]) -> list[Any]:
        """Return the index into one old axis for several new indices."""
        c = at[0]
        for i, n in zip(at[1:], sizes[1:], strict=True):
            c = Place(c, i, n)
        return [c]

    def regrouped(at: list[Any], new: list[Size], old: list[Size]) -> list[Any]:
        """Return the indices into two old axes for two new indices, with as many entries."""
        return cut(joined(at, new), old)

    while old or new:
        if taken := _leading(new, old):
            yield taken, partial(joined, sizes=new[:taken])
            old, new = old[1:], new[taken:]
        elif taken := _leading(old, new):
            yield 1, partial(cut, sizes=old[:taken])
            old, new = old[taken:], new[1:]
        elif math.prod(old[:2]) == math.prod(new[:2]):
            yield 2, partial(regrouped, new=new[:2], old=old[:2])
            old, new = old[2:], new[2:]
        else:
            raise NotImplementedError(f"from shape {tuple(old)} to {tuple(new)}")


def _leading(sizes: list[Size], one: list[Size]) -> int:
    """Return the number of sizes, from the first, whose product is the first size of `one`; 0 where none is."""
    products = accumulate(sizes, operator.mul)
    return next((k for k, n in enumerate(products, 1) if one and n == one[0]), 0)


def _indexed(x: AnySize, index: tuple[Any, ...]) -> AnySize:
    """Index by Ellipsis, None, slices, and one array of indices."""
    taken = sum(i is not None and i is not Ellipsis for i in index)
    full: list[Any] = []
    for i in index if any(i is Ellipsis for i in index) else (*index, Ellipsis):
        full += [slice(None)] * (x.ndim - taken) if i is Ellipsis else [i]
    sizes, shape, reads = iter(x.shape), [], []
    for i in full:
        if i is None:
            shape.append(1)
            continue
        parts, read = _along(i, next(sizes))
        reads.append((len(shape), len(shape) + len(parts), read))
        shape += parts
    return AnySize(tuple(shape), lambda *at: x.entry(*(read(*at[a:b]) for a, b, read in reads)), x.dtype)


def _along(i: Any, n: Size) -> tuple[list[Size], Callable[..., Any]]:
    """Return the sizes that an index leaves of an axis of size n, and the function from their indices to the axis'."""
    from veriformer.spec.arithmetic.indicators import Place

    if isinstance(i, AnySize):
        return list(i.shape), lambda *at: i.entry(*at) + 1
    if not isinstance(i, slice):
        raise NotImplementedError(f"index {i!r} of an array of any size")
    start, stop, step = i.start or 0, n if i.stop is None else i.stop, i.step or 1
    if step == 1:
        return [stop - start], lambda j: j + start
    if stop == n and start < step:
        return [(n - start + step - 1) // step], lambda j: Place(j, start + 1, step)
    raise NotImplementedError(f"slice {i} of an array of any size")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "swapaxes": _swapaxes,
    "broadcast_to": _broadcast_to,
    "repeat": _repeat,
    "concatenate": _concatenate,
    "stack": _stack,
    "reshape": _reshape,
}
