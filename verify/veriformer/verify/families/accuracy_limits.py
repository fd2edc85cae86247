"""How much of an error in half precision is too much: measured over the correct implementations, stored as data.

By operation and quantity, the table beside this module says what the error of the correct implementations came to at
the most, as multiples of what the plain formula explains, and how far that scatters from run to run. What an
implementation may have is the upper end of the interval that follows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from statistics import median

DEVIATIONS = 6.0
"""How far out the interval goes, in standard deviations: a right implementation lies beyond once in 10⁹ runs."""

LARGEST = 3.0
"""However errors scatter, so many times that of the plain formula is too much: no correct implementation comes near.

In one example, it is so many times what the least accurate of the correct implementations had in any.
"""

LEANING = 1.5
"""So many times the largest bias that a correct implementation was met with is too much: few runs meet the worst."""

TABLE = "accuracy_limits.json"


@dataclass(frozen=True)
class Measured:
    """What was measured of one quantity.

    error: the largest root mean square error of a correct implementation, over that of the plain formula, which is one
    of them; scatter: the standard deviation of its logarithm over runs of ``examples``. one: the largest of one
    example, less what chance explains. bias: the largest mean of signed errors, over what explains it.
    """

    error: float
    scatter: float
    one: float
    bias: float
    examples: int

    @property
    def leaning(self) -> float:
        """What the bias may be."""
        return LEANING * self.bias

    @property
    def alone(self) -> float:
        """What the root mean square error of one example may be, less what chance explains."""
        return LARGEST * self.one

    def limit(self, examples: int) -> float:
        """What the root mean square error may be over so many examples."""
        return min(LARGEST, self.error * math.exp(DEVIATIONS * self.scatter * math.sqrt(self.examples / examples)))


UNMEASURED = Measured(error=LARGEST, scatter=0.0, one=math.inf, bias=math.inf, examples=1)
"""What was not measured may be as large as errors may be at all, and lean as it likes."""


def by_chance(entries: int) -> float:
    """How many times as large as another the mean square error of so few entries may be, all else being equal.

    The logarithm of a root mean square over n numbers has a standard deviation of √(1/2n), that of two of them √(1/n).
    """
    return math.exp(DEVIATIONS / math.sqrt(entries))


def measured(operation: str, quantity: str) -> Measured:
    """What was measured of a quantity."""
    return _table().get(operation, {}).get(quantity, UNMEASURED)


@cache
def _table() -> Mapping[str, Mapping[str, Measured]]:
    """The table; what scattered less than is usual, as where results are the plain formula's bit for bit, may do so."""
    text = (resources.files(__package__) / TABLE).read_text(encoding="utf-8")
    table = {
        name: {quantity: Measured(**x) for quantity, x in found.items()} for name, found in json.loads(text).items()
    }
    usual = median(known.scatter for found in table.values() for known in found.values())
    return {
        name: {quantity: replace(known, scatter=max(known.scatter, usual)) for quantity, known in found.items()}
        for name, found in table.items()
    }
