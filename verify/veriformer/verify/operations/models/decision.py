"""Sequential decisions over perturbed runs: whether two ways differ by more than rounding explains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from veriformer.verify.judging.judge import Floats
from veriformer.verify.operations.models.noise import ERROR_RATE, RUNS, factor

FACTOR = 10.0
"""Number of spreads that must be seen: less is accepted, and runs go on until more is accused."""

LOOKS = 5
"""Number of looks at growing numbers of runs; the error rate is shared among them."""


def decided(
    distance: Floats, squares: Callable[[int], Floats], *, more: float = 0.0, rate: float = ERROR_RATE
) -> Floats:
    """Return the bound on every cell's distance, from as many perturbed runs as it takes to decide.

    squares: the mean squared noise of each cell over so many runs. more: a distance explained otherwise.
    """
    runs = RUNS
    while True:
        noise = np.sqrt(squares(runs))
        c = factor(runs, len(distance), rate / LOOKS)
        near, far = distance <= more + min(c, FACTOR) * noise, distance > more + c * noise
        if c <= FACTOR or far.any() or near.all():
            return np.asarray(more + np.where(far, c, min(c, FACTOR)) * noise)
        runs *= 2


PAIRS = (8, 32)
"""Runs after which the mean of differences is looked at."""

SMALL = 2.0
"""A mean within so many of its own spreads is none, and looked at no longer."""


def vanishing(
    differences: Callable[[int], list[Floats]],
    *,
    more: float = 0.0,
    wholly: bool = False,
    rate: float = ERROR_RATE,
) -> tuple[Floats, Floats]:
    """Return, by cell, the size of the mean difference, and the size up to which it is explained.

    differences: by the number of a run, the difference of two calls in it. more: a mean explained otherwise.
    wholly: take all runs, for the sharpest bound.
    """
    total, squares, done = [np.zeros(())], np.zeros(()), 0
    for runs in PAIRS:
        for number in range(done, runs):
            found = differences(number)
            total = found if not number else [a + b for a, b in zip(total, found, strict=True)]
            squares = squares + np.asarray([float(np.square(x).sum()) for x in found])
        done = runs
        means = np.asarray([float(np.linalg.norm(x)) / runs for x in total])
        with np.errstate(invalid="ignore"):
            spread = np.sqrt(np.maximum(squares / runs - np.square(means), 0.0) / (runs - 1))
        known = np.isfinite(means) & np.isfinite(spread)  # else a run left the range, and nothing is known
        means, spread = np.where(known, means, 0.0), np.where(known, spread, np.inf)
        bound = more + factor(runs - 1, len(means), rate / len(PAIRS)) * spread
        if (means > bound).any() or (not wholly and (means <= more + SMALL * spread).all()):
            break
    return means, bound
