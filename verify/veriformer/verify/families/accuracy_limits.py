"""Limits on errors in half precision: measured over the correct implementations, stored as data.

By operation and quantity, the table beside this module holds the largest error of the correct implementations, as a
multiple of what the plain formula explains, and its scatter from run to run. The limit for an implementation is the
upper end of the interval that follows.
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
"""Half-width of the interval in standard deviations: a correct implementation lies beyond once in 10⁹ runs."""

LARGEST = 3.0
"""Largest admitted error as a multiple of that of the plain formula, whatever the scatter: no correct implementation
comes near. For a single example, the multiple of the largest error that a correct implementation had in one."""

LEANING = 1.5
"""Largest admitted bias as a multiple of the largest of a correct implementation: few runs meet the worst."""

TABLE = "accuracy_limits.json"


@dataclass(frozen=True)
class Measured:
    """Measured errors of one quantity over the correct implementations.

    error: the largest root mean square error of a correct implementation, over that of the plain formula, which is one
    of them; scatter: the standard deviation of its logarithm over runs of ``examples``. one: the largest of one
    example, divided by what chance explains. bias: the largest mean of signed errors, over what explains it.
    """

    error: float
    scatter: float
    one: float
    bias: float
    examples: int

    @property
    def leaning(self) -> float:
        """Limit on the bias."""
        return LEANING * self.bias

    @property
    def alone(self) -> float:
        """Limit on the root mean square error of one example, divided by what chance explains."""
        return LARGEST * self.one

    def limit(self, examples: int) -> float:
        """Return the limit on the root mean square error over this number of examples."""
        return min(LARGEST, self.error * math.exp(DEVIATIONS * self.scatter * math.sqrt(self.examples / examples)))


UNMEASURED = Measured(error=LARGEST, scatter=0.0, one=math.inf, bias=math.inf, examples=1)
"""Limits of a quantity that was not measured: errors up to LARGEST, any bias."""


def by_chance(entries: int) -> float:
    """Return the ratio of two root mean square errors over ``entries`` entries that chance explains: exp(6 / √entries).

    The logarithm of a root mean square over n numbers has a standard deviation of √(1/2n), that of two of them √(1/n).
    """
    return math.exp(DEVIATIONS / math.sqrt(entries))


def measured(operation: str, quantity: str) -> Measured:
    """Return the measured errors of a quantity."""
    return _table().get(operation, {}).get(quantity, UNMEASURED)


@cache
def _table() -> Mapping[str, Mapping[str, Measured]]:
    """Return the table, its scatters at least their median, as where results equal the plain formula's."""
    text = (resources.files(__package__) / TABLE).read_text(encoding="utf-8")
    table = {
        name: {quantity: Measured(**x) for quantity, x in found.items()} for name, found in json.loads(text).items()
    }
    usual = median(known.scatter for found in table.values() for known in found.values())
    return {
        name: {quantity: replace(known, scatter=max(known.scatter, usual)) for quantity, known in found.items()}
        for name, found in table.items()
    }
