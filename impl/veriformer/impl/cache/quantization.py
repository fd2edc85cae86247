"""Storage of rows of keys and values: as they are, or in one byte per entry."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from veriformer.impl.precision import accumulation_dtype

LEVELS = 127  # −128 stays unused, so that x and −x have opposite codes


class Quantizer(Protocol):
    """Turns rows `[B, G, n, d]` into the tensors `[B, G, n, ·]` that are kept of them, and back."""

    def encode(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return what is stored of the rows."""
        ...

    def decode(self, stored: tuple[Tensor, ...]) -> Tensor:
        """Return the rows that are stored."""
        ...


@dataclass(frozen=True)
class Plain:
    """Rows as they are."""

    dtype: torch.dtype

    def encode(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the rows."""
        return (x,)

    def decode(self, stored: tuple[Tensor, ...]) -> Tensor:
        """Return the rows, without a copy."""
        (rows,) = stored
        return rows


@dataclass(frozen=True)
class Int8:
    r"""Symmetric rounding to 255 levels: $c = \mathrm{round}(127\, x / a)$ with $a = \max_i |x_i|$ of each row.

    What comes back, $c\, a / 127$, is within $a / 254$ of the row. The largest entry is stored, not the step $a / 127$,
    which underflows for the smallest rows and makes the product $c \cdot a$ overflow for the largest.
    """

    dtype: torch.dtype

    def encode(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the codes `[B, G, n, d]`, int8, and the largest entries `[B, G, n, 1]`, float32 or float64."""
        wide = x.to(accumulation_dtype(x.dtype))
        absmax = wide.abs().amax(-1, keepdim=True)
        codes = (wide / absmax.masked_fill(absmax == 0, 1) * LEVELS).round()
        return codes.to(torch.int8), absmax

    def decode(self, stored: tuple[Tensor, ...]) -> Tensor:
        """Return the rows that the codes stand for."""
        codes, absmax = stored
        return (codes.to(absmax.dtype) / LEVELS * absmax).to(self.dtype)
