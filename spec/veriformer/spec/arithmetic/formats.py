"""Binary floating-point formats: their constants, and rounding to nearest even."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Format:
    """The numbers ±m · 2^(e − p + 1) with integers 0 ≤ m < 2^p and emin ≤ e ≤ emax (IEEE 754-2019, section 3.3).

    `precision` is p, the hidden bit included; `emin` and `emax` are the exponents of the smallest and of the largest
    normal numbers. A format is at most as precise and as wide as fp64, in which its numbers are held.
    """

    name: str
    precision: int
    emin: int
    emax: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 53 and -1022 <= self.emin <= self.emax <= 1023):
            raise ValueError(f"format {self.name}: expected at most fp64's precision 53 and exponents −1022 to 1023")

    @cached_property
    def unit_roundoff(self) -> float:
        """u = 2^−p: half the distance from 1 to the next number."""
        return 2.0**-self.precision

    @cached_property
    def smallest_subnormal(self) -> float:
        """η = 2^(emin − p + 1): the distance between subnormal numbers."""
        return 2.0 ** (self.emin - self.precision + 1)

    @cached_property
    def smallest_normal(self) -> float:
        """2^emin: from here upwards rounding is relative."""
        return 2.0**self.emin

    @cached_property
    def max(self) -> float:
        """(2 − 2u) · 2^emax: the largest finite number."""
        return (2.0 - 2.0 * self.unit_roundoff) * 2.0**self.emax

    def round(self, x: ArrayLike) -> NDArray[np.float64]:
        """Round float64 values to this format: to nearest, ties to even, to infinity from `max` + ½ ulp on."""
        x = np.asarray(x, dtype=np.float64)
        if self.precision == 53:
            return x
        native = _NATIVE.get((self.precision, self.emin, self.emax))
        with np.errstate(all="ignore"):
            if native is not None:  # the same, by one instruction
                return x.astype(native).astype(np.float64)
            exponent = np.maximum(np.frexp(x)[1] - 1, self.emin)
            ulp = np.ldexp(1.0, exponent - self.precision + 1)
            y = np.rint(x / ulp) * ulp
            return np.asarray(np.where(np.abs(y) > self.max, np.copysign(np.inf, y), y))


_NATIVE = {(24, -126, 127): np.float32, (11, -14, 15): np.float16}
"""NumPy's own types by precision and exponents."""

FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("fp64", 53, -1022, 1023),
        Format("fp32", 24, -126, 127),
        Format("bf16", 8, -126, 127),
        Format("fp16", 11, -14, 15),
    )
}
