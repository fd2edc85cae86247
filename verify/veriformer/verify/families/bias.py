"""Systematic error in half precision: the mean of signed errors, where the input is about as large.

A bound grants every rounding its worst, and a mean square is dominated by the noise of rounding. What is left of signed
errors when they are averaged is neither: a formula that is slightly another one is off in one direction wherever its
input is of one sign and size. Errors are counted from the exact value rounded to the dtype, since rounding alone can
lean one way: near 3 every value of GELU rounds up to its argument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veriformer.verify.judging import students_t
from veriformer.verify.judging.judge import Floats, Indices, SignedErrors

PER_OCTAVE = 2
"""Number of bins of inputs per octave, on either side of zero."""

ERROR_RATE = 1e-9
"""Probability that chance exceeds its share of the explained error."""

LEAST = 24
"""Minimum number of distinct inputs in a bin."""


def bias(examples: Sequence[SignedErrors]) -> float:
    """Return the largest mean error of a bin, as a multiple of what the admitted forms and chance explain.

    Chance explains a multiple of the mean's standard error, by Student's t and the error rate shared among the bins; a
    form explains its own mean, for its roundings may lean one way, in proportion to how much of its noise the target
    has: who works in wider arithmetic has neither. Equal inputs round alike in what works entry by entry, so that as
    many errors are independent as inputs are different. Elsewhere the entries of an example may all come of one rounded
    value, and only examples are independent: how far their sums scatter says how uncertain the mean is.
    """
    inputs = np.concatenate([one.inputs for one in examples])
    observed = np.concatenate([one.observed for one in examples])
    forms = [np.concatenate(parts) for parts in zip(*(one.forms for one in examples), strict=True)]
    shared = not all(one.separate for one in examples)
    of = np.repeat(np.arange(len(examples)), [len(one.inputs) for one in examples]) if shared else None
    members = _members(_bins(inputs))
    found = (
        _of_bin(inputs[b], observed[b], [f[b] for f in forms], len(members), None if of is None else of[b])
        for b in members
    )
    return max(found, default=0.0)


def _bins(inputs: Floats) -> Floats:
    """Return the bin number of every input; 0 for zero."""
    with np.errstate(divide="ignore", invalid="ignore"):  # zeros have no octave
        numbers = np.sign(inputs) * (1e4 + np.floor(np.log2(np.abs(inputs)) * PER_OCTAVE))
    return np.where((inputs == 0) | ~np.isfinite(inputs), 0.0, numbers)


def _members(bins: Floats) -> list[np.ndarray]:
    return [np.flatnonzero(bins == one) for one in np.unique(bins) if one]


def _of_bin(inputs: Floats, observed: Floats, forms: Sequence[Floats], bins: int, examples: Indices | None) -> float:
    different = independent = len(np.unique(inputs))
    if independent < LEAST:
        return 0.0
    noise, mean = float(observed.std()), abs(float(observed.mean()))
    leaning = max((abs(float(f.mean())) * min(1.0, noise / f.std()) for f in forms if f.std()), default=0.0)
    error = noise / math.sqrt(different)
    if examples is not None:
        sums = np.bincount(examples, weights=observed - observed.mean())
        independent = min(different, len(np.unique(examples)))
        error = max(error, math.sqrt(float(np.square(sums).sum())) / len(observed))
    if independent < 2:
        return 0.0
    t = students_t.quantile(independent - 1, 1 - ERROR_RATE / (2 * bins))
    explained = leaning + t * error * math.sqrt(independent / (independent - 1))
    return mean / explained if explained else np.inf if mean else 0.0
