"""Structured values: patterns that Gaussian data never shows.

Hypothesis draws a kind and a seed; NumPy makes the array from the seed. Kinds come in the order in which they shrink,
the simplest first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, ...]


def _integers(rng: np.random.Generator, shape: Shape) -> Array:
    return rng.integers(-2, 3, shape).astype(np.float64)


def _gaussian(rng: np.random.Generator, shape: Shape) -> Array:
    return rng.standard_normal(shape)


def _ties(rng: np.random.Generator, shape: Shape) -> Array:
    return rng.choice(rng.standard_normal(2), shape)


def _one_signed(rng: np.random.Generator, shape: Shape) -> Array:
    x: Array = rng.choice([-1.0, 1.0]) * (0.1 + np.abs(rng.standard_normal(shape)))
    return x


def _offset(rng: np.random.Generator, shape: Shape) -> Array:
    """Draw rows whose mean is far from zero relative to their spread."""
    return rng.standard_normal(shape) + 6.0 * rng.standard_normal((*shape[:-1], 1))


def _peaked(rng: np.random.Generator, shape: Shape) -> Array:
    """Draw rows with a single outlier of ±6 along the last axis."""
    x = rng.standard_normal(shape)
    if x.size:
        place = rng.integers(0, shape[-1], (*shape[:-1], 1))
        np.put_along_axis(x, place, rng.choice([-6.0, 6.0], place.shape), -1)
    return x


def _spread(rng: np.random.Generator, shape: Shape) -> Array:
    """Draw magnitudes over four decades."""
    return rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-3.0, 1.0, shape)


def _duplicates(rng: np.random.Generator, shape: Shape) -> Array:
    """Draw rows that repeat, and entries that repeat within rows."""
    x = rng.standard_normal(shape)
    if x.size and len(shape) > 1:
        x = np.take(x, rng.integers(0, shape[-2], shape[-2]), axis=-2)
    return np.take(x, rng.integers(0, shape[-1], shape[-1]), axis=-1) if x.size and rng.random() < 0.3 else x


def _sparse(rng: np.random.Generator, shape: Shape) -> Array:
    return rng.standard_normal(shape) * (rng.random(shape) < 0.5)


def _small(rng: np.random.Generator, shape: Shape) -> Array:
    return 1e-2 * rng.standard_normal(shape)


_MAKERS: dict[str, Callable[[np.random.Generator, Shape], Array]] = {
    "integers": _integers,
    "gaussian": _gaussian,
    "ties": _ties,
    "one-signed": _one_signed,
    "offset": _offset,
    "peaked": _peaked,
    "spread": _spread,
    "duplicates": _duplicates,
    "sparse": _sparse,
    "small": _small,
}
KINDS: tuple[str, ...] = tuple(_MAKERS)
"""Kinds of values, in the order in which they shrink."""


@dataclass(frozen=True)
class Values:
    """Recipe for arrays: a kind and a seed. Equal recipes and shapes give equal arrays."""

    kind: str
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        """Independent generator for whatever else belongs to the same draw."""
        return np.random.default_rng([self.seed, 1])

    def array(self, *shape: int) -> Array:
        """Return float64 values of this shape."""
        return _MAKERS[self.kind](np.random.default_rng(self.seed), shape)


@cache
def seeds() -> st.SearchStrategy[int]:
    """Return a strategy for uniform NumPy seeds, where Hypothesis's integers crowd around 0; shrinks to 0."""
    return st.binary(min_size=4, max_size=4).map(int.from_bytes)


@cache
def values(kinds: tuple[str, ...] = KINDS) -> st.SearchStrategy[Values]:
    """Return a strategy for recipes of these kinds, the first the simplest."""
    return st.builds(Values, st.sampled_from(kinds), seeds())
