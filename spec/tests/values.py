"""Arithmetics that tests compute in, and the floats of what comes out."""

import numpy as np

from veriformer.spec.arithmetic import Exact, Float
from veriformer.spec.proofs.tower_arithmetic import entries

XP = Float()
# Two computations with 300 bits agree when they are rounded to fp64.
EXACT = Exact(300)


def floats(x):
    """Return a result as an array of floats, in its shape."""
    return np.array([float(e) for e in entries(x)]).reshape(np.shape(getattr(x, "value", x)))


def flat(result):
    """Return the floats of a result, or of all results of a tuple or list, in a list."""
    return (
        [e for part in result for e in flat(part)]
        if isinstance(result, tuple | list)
        else floats(result).ravel().tolist()
    )
