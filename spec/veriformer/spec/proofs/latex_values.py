"""Values of letters, operators and relations of a formula in LaTeX: numbers, arrays and functions.

A letter is named as it is read aloud (`sigma`, `d_model`, `x_hat`, `W^(1)`): a number, an array, whose indices count
from 1, or a function, of its indices or its arguments. Products of arrays are matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp

Letters = Mapping[str, Any]
Read = Callable[[Letters], Any]
"""Reader of a part of a formula: its value, given its letters."""


def _entrywise(function: str) -> Callable[[Any], Any]:
    return lambda x: np.frompyfunc(getattr(sp, function), 1, 1)(x)


_FUNCTIONS: dict[str, Any] = {
    **{name: _entrywise(name) for name in ("log", "exp", "sin", "cos", "tanh")},
    "max": lambda *x: sp.Max(*np.ravel(x)),
    "min": lambda *x: sp.Min(*np.ravel(x)),
    "diag": np.diag,
    "Concat": lambda *parts: np.concatenate(parts, -1),
}


class UnreadableError(ValueError):
    """A formula that the reader does not understand, or a letter that has no value."""


def related(relation: str, left: Any, right: Any) -> bool:
    r"""Return whether a relation holds; after \approx the right side is the left one, rounded to its digits."""
    if relation in ("=", "\\to"):
        return same(left, right)
    if relation == "\\approx":
        digits = next(k for k in range(20) if (right * 10**k).is_integer)
        return bool(abs(left - right) <= sp.Rational(1, 2 * 10**digits))
    if relation == "\\in":
        return any(same(left, x) for x in np.ravel(np.array(right, dtype=object)))
    order = {"<": left < right, ">": left > right, "\\le": left <= right, "\\ge": left >= right}
    order |= {"\\leq": order["\\le"], "\\geq": order["\\ge"]}
    return bool(order[relation])


def same(left: Any, right: Any) -> bool:
    """Return whether two numbers or arrays are equal: exactly, or to 12 digits where they were computed in floats."""
    x, y = (np.array(v, dtype=object) for v in (left, right))
    if x.size == y.size == 1:
        x, y = x.ravel(), y.ravel()
    return x.shape == y.shape and all(_equal(a, b) for a, b in zip(x.ravel(), y.ravel(), strict=True))


def _equal(a: Any, b: Any) -> bool:
    difference = sp.sympify(a) - sp.sympify(b) if a != b else sp.S.Zero
    if difference.has(sp.Float):
        return bool(abs(sp.N(difference)) <= 1e-12 * max(1, abs(sp.N(a))))
    return bool(difference == 0 or sp.simplify(difference) == 0)


def letter(name: str, indices: list[Read]) -> Read:
    """Return the reader of a letter, or a named function, at its indices."""

    def value(letters: Letters) -> Any:
        known = {**_FUNCTIONS, "infty": sp.oo, "pi": sp.pi, "e": sp.E, **letters}
        if name in known:
            return _at(known[name], [index(letters) for index in indices])
        stem, _, below = name.rpartition("_")
        family = f"{stem}_" if f"{stem}_" in known else stem
        if family in known and (below in letters or below.isdigit()):
            place = int(below) if below.isdigit() else letters[below]
            return _at(known[family], [place, *(index(letters) for index in indices)])
        raise UnreadableError(f"{name}: expected one of {', '.join(letters)}")

    return value


def _at(value: Any, indices: list[Any]) -> Any:
    if not indices:
        return value
    if callable(value):
        return value(*indices)
    if isinstance(indices[0], slice):
        return value[indices[0]]
    array = np.array(value, dtype=object)
    if any(not 1 <= i <= size for i, size in zip(indices, array.shape, strict=False)):
        raise UnreadableError(f"index {indices} of shape {array.shape}")
    return array[tuple(int(i) - 1 for i in indices)]


def then(read: Read, function: Callable[[Any], Any]) -> Read:
    """Return the reader that applies a function to what another reads."""
    return lambda letters: function(read(letters))


def both(operator: str, left: Read, right: Read) -> Read:
    """Return the reader of two parts of a formula, joined by an operator."""
    if operator == "\\oplus":
        return lambda letters: letters["oplus"](left(letters), right(letters))
    return lambda letters: _OPERATORS[operator](left(letters), right(letters))


def _multiplied(left: Any, right: Any) -> Any:
    return left @ right if np.ndim(left) and np.ndim(right) else left * right


def _power(base: Any, exponent: Any) -> Any:
    return np.frompyfunc(sp.Pow, 2, 1)(base, exponent)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "/": lambda x, y: x * (1 / sp.sympify(y)) if not np.ndim(y) else x / y,
    "\\odot": lambda x, y: np.asarray(x, dtype=object) * np.asarray(y, dtype=object),
    "\\cdot": _multiplied,
    "\\times": _multiplied,
    "juxtaposed": _multiplied,
    "^": _power,
    "call": lambda f, x: f(x),
    "applied": lambda f, x: f(*(x if isinstance(x, tuple) else (x,))) if callable(f) else _multiplied(f, x),
    "index": lambda x, i: _at(x, [i]),
}
