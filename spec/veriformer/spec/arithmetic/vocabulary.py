"""The vocabulary in which every formula is written, and the array that carries a value of an arithmetic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Raw = NDArray[Any]
Axis = int | tuple[int, ...] | None


class Array:
    """A value of the arithmetic `xp`: operators are its operations, so that formulas read as they are printed.

    `value` is the NumPy array that carries it. The other operand may be anything that `xp.asarray` takes: a Python
    int, float or Fraction, a NumPy number or array.
    """

    __slots__ = ("value", "xp")
    # NumPy's own operators must leave the right-hand side to us.
    __array_ufunc__ = None

    def __init__(self, xp: Arithmetic, value: Raw) -> None:
        self.xp = xp
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    def __add__(self, other: Any) -> Any:
        return self.xp.apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.xp.apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.xp.apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.xp.apply("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.xp.apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.xp.apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.xp.apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.xp.apply("divide", other, self)

    def __matmul__(self, other: Any) -> Any:
        return self.xp.apply("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.xp.apply("matmul", other, self)

    def __neg__(self) -> Any:
        return self.xp.apply("negative", self)

    def __abs__(self) -> Any:
        return self.xp.apply("absolute", self)

    def __getitem__(self, index: Any) -> Any:
        return self.xp.rearrange(lambda part: part[index], self)

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"{self.xp!r}.asarray({self.value!r})"


class Arithmetic(ABC):
    """Vocabulary of a formula's first argument `xp`.

    The vocabulary stands here once. An arithmetic gives it meaning by saying how numbers become arrays (`asarray`),
    what each computing operation does (`apply`, by the operation's name), and which parts of an array move together
    (`rearrange`). Axes, shapes and broadcasting are NumPy's. Masks and indices are NumPy bool and integer arrays,
    which are known exactly. Entries of −∞ are admitted as exact inputs: exp(−∞) is 0.
    """

    of_symbols = False
    """True if values are expressions, in which constants such as π stand for themselves."""

    @abstractmethod
    def asarray(self, x: Any) -> Any:
        """Take a number, a nested list or an array of numbers; arrays of this arithmetic pass unchanged."""

    @abstractmethod
    def apply(self, operation: str, /, *operands: Any, **options: Any) -> Any:
        """Carry out a computing operation of the vocabulary, given by name."""

    @abstractmethod
    def rearrange(self, move: Callable[..., Any], /, *arrays: Any) -> Any:
        """Apply `move`, which only copies and places entries, to every part that the arrays carry."""

    def sqrt(self, x: Any) -> Any:
        """Return √x, of a number that no correct implementation makes negative."""
        return self.apply("sqrt", x)

    def exp(self, x: Any) -> Any:
        """Return e^x, and 0 at −∞."""
        return self.apply("exp", x)

    def log(self, x: Any) -> Any:
        """Return the natural logarithm, −∞ at 0."""
        return self.apply("log", x)

    def tanh(self, x: Any) -> Any:
        """Return the hyperbolic tangent."""
        return self.apply("tanh", x)

    def erf(self, x: Any) -> Any:
        """Return 2/√π ∫₀ˣ exp(−t²) dt."""
        return self.apply("erf", x)

    def sin(self, x: Any) -> Any:
        """Return the sine of x radians."""
        return self.apply("sin", x)

    def cos(self, x: Any) -> Any:
        """Return the cosine of x radians."""
        return self.apply("cos", x)

    def maximum(self, a: Any, b: Any) -> Any:
        """Return the larger of two, entry by entry."""
        return self.apply("maximum", a, b)

    def minimum(self, a: Any, b: Any) -> Any:
        """Return the smaller of two, entry by entry."""
        return self.apply("minimum", a, b)

    def matmul(self, a: Any, b: Any) -> Any:
        """Return the matrix product over the last two axes, the axes before them broadcast."""
        return self.apply("matmul", a, b)

    def power(self, x: Any, n: int) -> Any:
        """Return x^n for n ≥ 1, by squaring: about log₂ n products."""
        if n == 1:
            return x
        square = self.power(x * x, n // 2)
        return square * x if n % 2 else square

    def sum(self, x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        """Return the sum along one axis, several, or all; 0 over an empty axis."""
        return self.apply("sum", x, axis=axis, keepdims=keepdims)

    def cumsum(self, x: Any, axis: int = -1) -> Any:
        """Return the cumulative sums along one axis."""
        return self.apply("cumsum", x, axis=axis)

    def max(self, x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        """Return the largest entry along one axis, several, or all; −∞ over an empty axis."""
        return self.apply("max", x, axis=axis, keepdims=keepdims)

    def where(self, mask: Any, a: Any, b: Any) -> Any:
        """Return `a` where the exactly known `mask` is true, else `b`; entries not chosen are unread and may be NaN."""
        m = np.asarray(mask, dtype=bool)
        return self.rearrange(lambda p, q: np.where(m, p, q), a, b)

    def swapaxes(self, x: Any, i: int, j: int) -> Any:
        """Exchange the axes i and j."""
        return self.rearrange(lambda p: np.swapaxes(p, i, j), x)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Reshape, with the entries in row-major order."""
        return self.rearrange(lambda p: np.reshape(p, tuple(shape)), x)

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> Any:
        """Repeat axes of length 1 until the shape is reached."""
        return self.rearrange(lambda p: np.broadcast_to(p, tuple(shape)), x)

    def concat(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Join along an axis that exists."""
        return self.rearrange(lambda *parts: np.concatenate(parts, axis=axis), *arrays)

    def stack(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Join along a new axis."""
        return self.rearrange(lambda *parts: np.stack(parts, axis=axis), *arrays)

    def repeat(self, x: Any, n: int, axis: int) -> Any:
        """Repeat every entry n times in place along `axis`: for n = 2, a b becomes a a b b."""
        return self.rearrange(lambda p: np.repeat(p, n, axis=axis), x)

    def take_along(self, x: Any, indices: Any, axis: int) -> Any:
        """Return the entries at `indices` along `axis`, after numpy.take_along_axis."""
        i = np.asarray(indices)
        return self.rearrange(lambda p: np.take_along_axis(p, i, axis=axis), x)
