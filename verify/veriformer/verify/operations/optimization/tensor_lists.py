"""Shapes of many tensors: errors at the end of the last tensor must show as well."""

from __future__ import annotations

import math

import numpy as np

Shape = tuple[int, ...]

OWN = 300
"""Cost of a tensor besides its entries, counted in entries."""

_MANY = 100
"""Entries that each tensor of a list may have without making it much dearer."""


def shapes_of(rng: np.random.Generator, tensors: int, entries: int) -> list[Shape]:
    """Draw the shapes of a list of tensors, one of which, at any place, has about ``entries`` entries.

    In half of the lists the others have few; in the other half any number up to a hundred, on the scale of logarithms.
    """
    few = rng.random() < 0.5
    found = [_small(rng) if few else _shape(rng, _log_uniform(rng, _MANY)) for _ in range(tensors)]
    found[rng.integers(tensors)] = _shape(rng, entries)
    return found


def _small(rng: np.random.Generator) -> Shape:
    return tuple(map(int, rng.integers(1, 4, rng.integers(0, 3))))


def _shape(rng: np.random.Generator, entries: int) -> Shape:
    """Draw the shape of a vector or a matrix, high or wide, with ``entries`` entries or a few less."""
    short = _log_uniform(rng, math.isqrt(entries)) if rng.random() < 0.5 else 1
    both = short, entries // short
    return (entries,) if short == 1 else both if rng.random() < 0.5 else both[::-1]


def _log_uniform(rng: np.random.Generator, most: int) -> int:
    return int(float(most + 1) ** float(rng.random()))
