"""Features of positions: batched, fractional, negative, far out; lengths that differ; the sizes of tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Named, fragile, ordinary

TABLES = tuple(2**k for k in (7, 9, 10, 11, 12, 13, 15, 17))
"""Usual lengths of precomputed tables of angles in public code."""


def of_positions(operation: str) -> Iterator[Feature]:
    """Yield the features of calls of positional encodings, biases, masks and buckets."""
    if operation == "rope":
        yield from ordinary(operation, *_rope())
        yield from fragile(operation, ("d_k = 2", lambda a: a["x"].shape[-1] == 2))
    if operation in ("alibi_bias", "causal_mask"):
        yield from ordinary(operation, *_lengths())
    if operation in ("alibi_bias", "alibi_slopes"):
        yield from ordinary(operation, ("heads no power of two", lambda a: a["num_heads"].bit_count() != 1))
    if operation == "causal_mask":
        yield from ordinary(operation, ("a window below the number of keys", lambda a: a["window"] < a["n_k"]))
    if operation == "t5_relative_position_bucket":
        yield from ordinary(operation, *_buckets())


def _rope() -> tuple[Named, ...]:
    return (
        ("batched positions", lambda a: a["positions"].ndim > 1),
        ("positions for each head", lambda a: a["positions"].ndim > 2 and a["positions"].shape[-2] > 1),
        ("negative positions", lambda a: bool((a["positions"] < 0).any())),
        ("fractional positions", lambda a: bool((a["positions"] % 1 != 0).any())),
        ("positions out of order", lambda a: bool((a["positions"].diff(dim=-1) <= 0).any())),
        ("positions from elsewhere than 0", lambda a: bool((a["positions"][..., 0] != 0).any())),
        *((f"positions above {size - 1}", partial(_beyond, size)) for size in TABLES),
        ("linear scaling", lambda a: a["scaling"][0] == "linear"),
        ("ntk scaling", lambda a: a["scaling"][0] == "ntk"),
        ("a scaling below 1", lambda a: a["scaling"][1] < 1),
    )


def _beyond(size: int, a: Arguments) -> bool:
    return bool((a["positions"] >= size).any())


def _lengths() -> tuple[Named, ...]:
    return (
        ("n_q ≠ n_k", lambda a: a["n_q"] != a["n_k"]),
        ("n_q < n_k", lambda a: a["n_q"] < a["n_k"]),
        ("n_q > n_k", lambda a: a["n_q"] > a["n_k"]),
    )


def _buckets() -> tuple[Named, ...]:
    return (
        ("keys after the query", lambda a: bool((a["relative_position"] > 0).any())),
        ("a distance beyond the last bucket", lambda a: bool((a["relative_position"].abs() >= _largest(a)).any())),
    )


def _largest(a: Arguments) -> int:
    return int(a.get("max_distance", 128))
