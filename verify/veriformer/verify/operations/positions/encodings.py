"""Draws shared by the encodings of positions: numbers of heads, bad integers, slack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Trial
from veriformer.verify.strategies import sizes


def slopes_by_ratio(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return powers of the first slope, as the paper's authors compute them: its error grows with the exponent."""
    heads = int(a["num_heads"])
    below = 1 << (heads.bit_length() - 1)

    def powers(number: int, exponents: Any) -> Any:
        first = xp.exp(xp.log(xp.asarray(2)) * Fraction(-8, number))
        return xp.exp(xp.log(first) * exponents)

    own, between = powers(below, np.arange(1, below + 1)), powers(2 * below, np.arange(1, 2 * below, 2))
    return [xp.concat([own, between], axis=0)[:heads]]


def bad_integers(trial: Trial, arguments: Mapping[str, int]) -> Iterator[InvalidCall]:
    """Yield each size negative, no integer, or missing."""
    for name in arguments:
        bad: dict[str, Any] = {"negative": -trial.draw(sizes()), "a bool": True, "a fraction": 2.5, "missing": None}
        for what, value in bad.items():
            yield InvalidCall(f"{name}: {what}", {**arguments, name: value}, (name,))


SLACK = 2.0**-40


ALGEBRA = ("fp64", "fp32")
