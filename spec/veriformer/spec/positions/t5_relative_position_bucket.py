"""The buckets of T5's relative positions (document 002, section 6.3)."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def t5_relative_position_bucket(
    relative_position: ArrayLike, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> NDArray[np.int64]:
    """The bucket of each relative position, key − query; int64 of the same shape.

    Half of the buckets hold one distance each, the others as many as make their edges grow geometrically up to
    max_distance; the last holds all that is further. In two directions each has half of num_buckets, keys behind the
    query first; in one, keys ahead of the query are at distance 0.
    """
    r = np.asarray(relative_position)
    if not bidirectional:
        return _bucket(np.maximum(-r, 0), num_buckets, max_distance)
    half = num_buckets // 2
    return np.asarray(_bucket(np.abs(r), half, max_distance) + half * (r > 0), dtype=np.int64)


def _bucket(distance: Any, buckets: int, max_distance: int) -> NDArray[np.int64]:
    """Return the bucket: the number of edges that the distance has reached."""
    reached = np.searchsorted(edges(buckets, max_distance), distance, side="right")
    return np.asarray(reached, dtype=np.int64)


def edges(buckets: int, max_distance: int) -> list[int]:
    """The smallest distance of each bucket but the first.

    With e = ⌊buckets / 2⌋ exact distances, L = buckets − e and M = max_distance, bucket e + t begins where
    L log(x/e) / log(M/e) reaches t: at the smallest whole x with x^L ≥ M^t e^(L − t), which no rounding blurs.
    """
    exact = buckets // 2
    many = buckets - exact
    reached = [max_distance**t * exact ** (many - t) for t in range(1, many)]
    return [*range(1, exact + 1), *(bisect_left(range(max_distance), x, key=lambda n: n**many) for x in reached)]
