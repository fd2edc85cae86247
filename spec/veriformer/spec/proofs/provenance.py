"""Where a side of an identity comes from, so that a restatement is told from a result.

SymPy simplifies as it builds: what a formula computes and what a document prints are often one and the same object when
the prover sees them. Whether the identity says something then depends on where the two come from. Two equal sides that
nobody computed, or that one function computed from one input, are a restatement, however they were written down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp


@dataclass(frozen=True)
class Computed:
    """A value, or an array of values, with the function that computed it and what of; `computed` makes one."""

    value: Any
    origin: str
    inputs: tuple[Any, ...] = ()

    def each(self, function: Callable[[Any], Any]) -> Computed:
        """Apply a function to every entry, in the order of the entries, and keep the provenance."""
        return replace(self, value=[function(e) for e in flat(self.value)])

    def then(self, function: Callable[[Any], Any]) -> Computed:
        """Apply a function to the value as a whole, and keep the provenance."""
        return replace(self, value=function(self.value))

    def entry(self, *index: int) -> Computed:
        """Return an entry of the array, with its provenance."""
        return replace(self, value=_values(self.value)[index])


def computed(function: Callable[..., Any], *arguments: Any, **options: Any) -> Computed:
    """Call a function, and keep its name with what it returns; an array of no axes becomes its only entry.

    The function must have a name of its own to be told from others: a lambda, a local function or a class, which only
    builds an expression, raises TypeError.
    """
    name = named(function)
    if isinstance(function, type) or "<" in name:
        raise TypeError(f"function: expected one that is defined in a module, got {function!r}")
    value = function(*arguments, **options)
    array = getattr(value, "value", None)
    inputs = tuple(tuple(flat(a)) if hasattr(a, "value") else repr(a) for a in (*arguments, *options.items()))
    return Computed(array[()] if isinstance(array, np.ndarray) and array.ndim == 0 else value, name, inputs)


def plain(side: Any) -> Any:
    """Return the expression of a side, without its origin."""
    return sp.sympify(side.value if isinstance(side, Computed) else side)


def restated(left: Any, right: Any) -> bool:
    """Return whether the two sides are one expression that comes from one place."""
    if plain(left) != plain(right):
        return False
    origins = [(side.origin, side.inputs) for side in (left, right) if isinstance(side, Computed)]
    return not origins or (len(origins) == 2 and origins[0] == origins[1])


def at_letters(left: Any, right: Any) -> set[str]:
    """Return the functions that computed one side of an identity, and not the other, on arrays of any length."""
    first, second = ({side.origin} if _any_length(side) else set() for side in (left, right))
    return first ^ second


def named(function: Callable[..., Any]) -> str:
    """Return the name of a function as an origin."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '<unnamed>')}"


def _any_length(side: Any) -> bool:
    return isinstance(side, Computed) and _ANY_LENGTH in side.inputs


_ANY_LENGTH = "AnyLength()"
"""Name of the arithmetic of any length among the inputs."""


def entries_with_origin(x: Any) -> list[Any]:
    """Return the entries of an array or of a sequence, each with the origin of the whole."""
    return [replace(x, value=e) for e in flat(x.value)] if isinstance(x, Computed) else flat(x)


def flat(x: Any) -> list[Any]:
    """Return the entries of an array of any arithmetic, of a NumPy array, or of a sequence, also of a computed one."""
    return list(_values(x).ravel())


def _values(x: Any) -> Any:
    while not isinstance(x, np.ndarray) and hasattr(x, "value"):
        x = x.value
    return np.asarray(x, dtype=object)
