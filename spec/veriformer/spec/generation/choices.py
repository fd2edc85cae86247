"""Choices by size, which formulas make of exactly known scores: the highest, and the order from high to low.

A choice jumps where two scores meet. Scores are inputs, so it is made on their exact values, in any arithmetic whose
values can be compared; of equal ones the lower index comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def exact_values(x: Any) -> NDArray[Any]:
    """The numbers that an array of any arithmetic, or a NumPy array, carries."""
    return np.asarray(getattr(x, "value", x))


def highest(x: Any) -> NDArray[np.int64]:
    """The index of the largest entry along the last axis, the lowest of equals."""
    return np.asarray(np.argmax(exact_values(x), axis=-1), dtype=np.int64)


def ranks(x: Any) -> NDArray[np.int64]:
    """Return the rank of each entry along the last axis: 0 for the largest, the lower index first of equals."""
    order = np.argsort(-exact_values(x), axis=-1, kind="stable")
    return np.asarray(np.argsort(order, axis=-1), dtype=np.int64)
