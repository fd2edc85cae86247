"""Arithmetics whose arrays carry one NumPy array: of floats, of mpmath numbers, or of SymPy expressions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.vocabulary import Arithmetic, Array, Raw


class Plain(Arithmetic):
    """An arithmetic given by how it converts numbers and by one function of NumPy arrays per operation."""

    functions: Mapping[str, Callable[..., Any]]

    @abstractmethod
    def convert(self, x: Any) -> Raw:
        """Turn numbers into the NumPy array that carries them."""

    @abstractmethod
    def finish(self, y: Any) -> Raw:
        """Turn what a function returned into the NumPy array that carries it."""

    def tofloat(self, value: Raw) -> NDArray[np.float64]:
        """Round the carried numbers to the nearest float64."""
        return np.asarray(value, dtype=np.float64)

    def compute(self, operation: str, /, *values: Raw, **options: Any) -> Raw:
        """Carry out an operation on what the arrays carry."""
        return self.finish(self.functions[operation](*values, **options))

    def asarray(self, x: Any) -> Array:
        """Take a number, a nested list or an array of numbers; arrays of this arithmetic pass unchanged."""
        if not isinstance(x, Array):
            with np.errstate(all="ignore"):
                return Array(self, self.convert(x))
        if x.xp is not self:
            raise TypeError(f"expected numbers or an array of {self!r}, got an array of {x.xp!r}")
        return x

    def apply(self, operation: str, /, *operands: Any, **options: Any) -> Array:
        """Carry out a computing operation of the vocabulary, given by name."""
        values = [self.asarray(x).value for x in operands]
        with np.errstate(all="ignore"):
            return Array(self, self.compute(operation, *values, **options))

    def rearrange(self, move: Callable[..., Any], /, *arrays: Any) -> Array:
        """Apply `move`, which only copies and places entries, to what the arrays carry."""
        return Array(self, self.moved(move, [self.asarray(x).value for x in arrays]))

    def moved(self, move: Callable[..., Any], values: list[Raw]) -> Raw:
        """Return the values after a `move`, as the NumPy array that carries them."""
        return np.asarray(move(*values), dtype=values[0].dtype)
