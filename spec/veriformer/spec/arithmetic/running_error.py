"""Running error analysis (Wilkinson, Higham): an arithmetic whose bounds are the only tolerances.

Correct results of some operations need not be the nearest numbers: their error is bounded in ulps. An ulp of a result y
is at most 2 u |y|, and is the smallest subnormal where y is subnormal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.exact import Exact
from veriformer.spec.arithmetic.float import Float
from veriformer.spec.arithmetic.formats import FORMATS, Format
from veriformer.spec.arithmetic.rules import INFLATION, RULES, Reals, RoundingModel
from veriformer.spec.arithmetic.vocabulary import Arithmetic, Array, Raw

# The whole error in ulps, no smaller than the largest that these sources state for fp32 and fp64. The first two count
# from the correctly rounded result, hence half an ulp more here.
# - CUDA C++ Programming Guide, "Mathematical Functions", maximum ulp errors: exp and log 1, tanh, erf, sin and cos 2;
# - GNU C Library manual, "Known Maximum Errors in Math Functions", x86-64: exp, log, erf, sin and cos 1, tanh 2;
# - SLEEF, whose u10 functions PyTorch's CPU kernels call: 1.0 for all;
# - PTX ISA: 2 for div.full.f32, Triton's division of fp32; relatively 2^−23, so 1, for sqrt.approx.f32.
ULPS: Mapping[str, float] = MappingProxyType(
    {
        "sqrt": 1.0,
        "exp": 2.0,
        "log": 2.0,
        "tanh": 2.5,
        "erf": 2.5,
        "sin": 2.5,
        "cos": 2.5,
        # Also covers x · (1 / s), a rounding each for the reciprocal and the product: (1 + u)² − 1 ≤ 4 u.
        "divide": 2.0,
    }
)

# PyTorch's vectorised erf of the halves computes in fp32 after Abramowitz and Stegun 7.1.26, whose error is 1.5e−7
# (2.5 · 2^−24) absolute, not relative, before rounding; so do its fp32 kernels on some platforms.
ERF_ABSOLUTE = 8.0 * 2.0**-24


class RunningErrorArray(Array):
    """The oracle's value, `error`, which bounds how far a correct implementation may be from it, and |value|.

    Error and magnitude are float64 arrays of the value's shape. An infinite value has error 0 where it is exact.
    """

    __slots__ = ("error", "magnitude")

    def __init__(self, xp: RunningError, value: Raw, error: Reals, magnitude: Reals) -> None:
        self.xp = xp
        self.value = value
        self.error = error
        self.magnitude = magnitude


class RunningError(Arithmetic):
    """Evaluate a formula in the oracle, and bound how far a correct implementation in `format` may be from that.

    Correct is what performs the formula's operations, in any order of summation, each with the unit roundoff u of the
    format; `rules` says what each operation may lose. A half has the working range of fp32, since no finite result may
    overflow through a half-precision intermediate, but its own roundoff and its own underflow, since the accumulation
    dtype is the implementation's.

    `oracle` is `Float()` for formats below fp64 and `Exact()` for fp64, unless given; its own rounding is in every
    bound. Two parameters widen the bounds, to what a platform documents and no further: `ulps` replaces the table of
    the errors of functions, and `flush` grants that subnormal numbers are read and written as zero.
    """

    def __init__(
        self,
        format: Format,
        *,
        oracle: Float | Exact | None = None,
        ulps: Mapping[str, float] = ULPS,
        flush: bool = False,
    ) -> None:
        self.format = format
        self.oracle = oracle or (Float() if format.precision < 53 else Exact())
        if isinstance(self.oracle, Float) and self.oracle.format.precision < 53:
            raise ValueError(f"oracle: expected Float() or Exact(), got {self.oracle!r}, which rounds by itself")
        # In fp64 itself the errors underflow too, so that half a subnormal becomes four.
        underflow = max(format.smallest_subnormal * 0.5 * INFLATION, 4.0 * 2.0**-1074)
        self.machine = RoundingModel(
            # The oracle is one more implementation: |x̂ − v| contains the errors of both.
            u=(format.unit_roundoff + self.oracle.unit_roundoff) * INFLATION,
            underflow=format.smallest_normal if flush else underflow,
            # A kernel may take the maximum of its scores for up to log 8 more than it is, and divide by that much less;
            # not in halves, where that would cost digits that count.
            vanished=8.0 if format.precision >= 24 else 1.0,
            flush=format.smallest_normal if flush else 0.0,
            largest=max(format.max, FORMATS["fp32"].max),
            erf_absolute=ERF_ABSOLUTE if format.precision <= 24 else 0.0,
            ulps=ulps,
        )
        self._constant = lru_cache(maxsize=256, typed=True)(self._read)

    def __repr__(self) -> str:
        return f"RunningError({self.format.name}, oracle={self.oracle!r})"

    def asarray(self, x: Any) -> RunningErrorArray:
        """Take numbers: exact where the format holds them, rounded once where it does not."""
        if type(x) is int or type(x) is float:
            return self._constant(x)
        if not isinstance(x, Array):
            return self._read(x)
        if not isinstance(x, RunningErrorArray) or x.xp is not self:
            raise TypeError(f"expected numbers or an array of {self!r}, got an array of {x.xp!r}")
        return x

    def _read(self, x: Any) -> RunningErrorArray:
        with np.errstate(all="ignore"):
            value = self.oracle.convert(x)
            magnitude = self.oracle.magnitude(value)
            lost = self.machine.u * magnitude + self.machine.underflow
            lost = np.where(magnitude <= self.machine.largest, lost, np.inf)
            error = np.where(self._holds(x, value), 0.0, lost)
            if self.machine.flush:
                error = np.where(magnitude < self.format.smallest_normal, np.maximum(error, magnitude), error)
        return RunningErrorArray(self, value, error, magnitude)

    def _holds(self, x: Any, value: Raw) -> Any:
        if self.format.precision == 53 and np.asarray(x).dtype.kind == "f":
            return ~np.isnan(x)
        return np.asarray(self.format.round(self.oracle.tofloat(value)) == value, dtype=bool)

    def rearrange(self, move: Callable[..., Any], /, *arrays: Any) -> RunningErrorArray:
        """Apply `move`, which only copies and places entries, to values, errors and magnitudes alike."""
        xs = [self.asarray(x) for x in arrays]
        value = self.oracle.moved(move, [x.value for x in xs])
        error = np.asarray(move(*[x.error for x in xs]))
        return RunningErrorArray(self, value, error, np.asarray(move(*[x.magnitude for x in xs])))

    def apply(self, operation: str, /, *operands: Any, **options: Any) -> RunningErrorArray:
        """Carry out a computing operation of the vocabulary, given by name, and bound its error."""
        xs = [self.asarray(x) for x in operands]
        with np.errstate(all="ignore"):
            value = self.oracle.compute(operation, *[x.value for x in xs], **options)
            y = self.oracle.magnitude(value)
            error = np.asarray(RULES[operation](self.machine, y, *xs, **options))
            # False also where anything is infinite or undefined.
            if not np.maximum.reduce(y + error, axis=None, initial=0.0) <= self.machine.largest:
                error = self._without_bound(operation, y, error, xs, options)
        return RunningErrorArray(self, value, error, np.asarray(y))

    def _without_bound(
        self, operation: str, y: Reals, error: Reals, xs: list[RunningErrorArray], options: Mapping[str, Any]
    ) -> Reals:
        """Return errors, infinite where the result may overflow or is undefined, and 0 where it is exactly infinite."""
        exact = np.isinf(y) & ((error == 0.0) | self._infinite(operation, xs, options))
        return np.where(exact, 0.0, np.where(y + error <= self.machine.largest, error, np.inf))

    def _infinite(self, operation: str, xs: list[RunningErrorArray], options: Mapping[str, Any]) -> Any:
        """Return the mask where an exactly infinite operand makes an infinite result exact: no other operand is in
        doubt.
        """
        if operation in ("matmul", "cumsum"):
            return False
        infinite: Any = False
        certain: Any = True
        for x in xs:
            i = np.isinf(x.magnitude) & (x.error == 0.0)
            # The sign of a factor must be known.
            known = x.error < (x.magnitude if operation in ("multiply", "divide") else np.inf)
            infinite, certain = infinite | i, certain & known
        if options:
            return np.any(infinite, **options) & np.all(certain, **options)
        return infinite & certain

    def judgeable(self, x: Any) -> tuple[Reals, Reals]:
        """Return the values in float64, and the bound on a result that is finally rounded to the format.

        The bound is inf where the true result may overflow the format, 0 where the result is exactly infinite or zero;
        it contains the conversion of the oracle's value to float64.
        """
        x = self.asarray(x)
        with np.errstate(all="ignore"):
            value = self.oracle.tofloat(x.value)
            u = self.format.unit_roundoff + 2.0**-53
            bound = (x.error + u * (x.magnitude + x.error)) * INFLATION
            bound = bound + self.machine.underflow * np.sign(bound)
            bound = np.where(x.magnitude + bound <= self.format.max, bound, np.inf)
            return value, np.where(np.isinf(x.magnitude) & (x.error == 0.0), 0.0, bound)
