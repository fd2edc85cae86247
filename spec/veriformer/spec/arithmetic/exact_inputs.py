"""Questions that a formula may ask about exactly known values.

Formulas run in arithmetics whose arrays have no truth value (symbols, bounds), so they must not compare. The two
exceptions are exact inputs: a score of −∞, which stands for a hidden key, and a zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.any_size import AnySize, entrywise


def exactly_equal(x: Any, number: float) -> Any:
    """Return the mask where the array holds exactly this number; a symbol never does."""
    value = getattr(x, "value", x)
    if isinstance(value, AnySize):
        return nowhere(value)
    return np.asarray(np.equal(value, number, dtype=object), dtype=bool)


def nowhere(x: AnySize) -> AnySize:
    """Return a mask of this shape that is false throughout: no letter equals a number."""
    return entrywise(lambda _: 0, x)


def unbroadcast(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Apply the adjoint of broadcasting `shape` to `x.shape`: sum over every axis that was stretched or added.

    It is one sum. Axis by axis would grant few roundings, as if no implementation went through the terms in a row.
    """
    lead = x.ndim - len(shape)
    stretched = (lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1)
    axes = (*range(lead), *stretched)
    return xp.reshape(xp.sum(x, axis=axes), shape) if axes else x
