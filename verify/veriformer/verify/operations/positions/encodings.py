"""Draws shared by the encodings of positions: numbers of heads, bad integers, slack."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np


def slopes_by_ratio(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return powers of the first slope, as the paper's authors compute them: its error grows with the exponent."""
    heads = int(a["num_heads"])
    below = 1 << (heads.bit_length() - 1)

    def powers(number: int, exponents: Any) -> Any:
        first = xp.exp(xp.log(xp.asarray(2)) * Fraction(-8, number))
        return xp.exp(xp.log(first) * exponents)

    own, between = powers(below, np.arange(1, below + 1)), powers(2 * below, np.arange(1, 2 * below, 2))
    return [xp.concat([own, between], axis=0)[:heads]]


SLACK = 2.0**-40


ALGEBRA = ("fp64", "fp32")
