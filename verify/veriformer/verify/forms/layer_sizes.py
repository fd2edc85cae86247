"""Sizes that layers of attention are built with, for the calls that they are given, and flags that are set."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.configs import LAYER_INDICES
from veriformer.verify.forms.construction import score_scaling

HEADS, WIDTH = 2, 12
"""Sizes of the layer that is looked at before it is judged."""

SHORTEST = 160
"""A module is made for so many positions at least: one for all short sequences."""

SMALLEST_BATCH = 8
"""A module is made for so many texts at least."""


def length_for(*rows: Tensor) -> int:
    """Return the number of positions of a module that reads these rows, a power of two so that few are built."""
    longest = max(x.shape[1] for x in rows)
    return SHORTEST if longest <= SHORTEST else 1 << (longest - 1).bit_length()


def batch_for(x: Tensor) -> int:
    """Return the batch size with which to build a module that reads x: some allocate their cache for it."""
    return max(SMALLEST_BATCH, 1 << (len(x) - 1).bit_length())


def sizes_of(
    width: int,
    heads: int,
    groups: int | None,
    head_dim: int,
    out: int,
    length: int = SHORTEST,
    *,
    batch: int = SMALLEST_BATCH,
) -> dict[str, Any]:
    """Return sizes by their names in constructors."""
    kv = {} if groups is None else {"kv_heads": groups}
    sizes = {
        "width": width,
        "out": out,
        "heads": heads,
        "head_dim": head_dim,
        "length": length,
        "layers": 2,
        "batch": batch,
    }
    return {**sizes, **kv, "vocabulary": 13, "inner": 2 * width}


def own_flags(candidate: Candidate) -> dict[str, Any]:
    """Return constructor flags: no biases, which the contract has not, and layer index 0."""
    names = ("bias", "use_bias", "qkv_bias", "attention_bias")
    biases = {name: False for name in candidate.constructor if name in names}
    return score_scaling(candidate) | biases | dict.fromkeys(LAYER_INDICES, 0)
