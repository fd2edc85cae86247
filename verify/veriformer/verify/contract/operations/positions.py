"""Positions: encodings, rotations, biases and buckets."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from torch import Tensor


def sinusoidal_encoding(num_positions: int, d_model: int, *, base: float = 10000.0) -> Tensor:
    """The positions from 0 on as sines and cosines of many wavelengths, interleaved (28, 29)."""


def rope(
    x: Tensor,
    positions: Tensor,
    *,
    base: float = 10000.0,
    pairing: str = "interleaved",
    scaling: tuple[str, float] | None = None,
) -> Tensor:
    """Pairs of features, "interleaved" or by "half", turned by angles that grow with the position (30, 31)."""


def alibi_slopes(num_heads: int) -> Tensor:
    """How fast the score falls with distance in each head, [H]."""


def alibi_bias(num_heads: int, n_q: int, n_k: int) -> Tensor:
    """What each head adds to the scores, −m · distance [H, n_q, n_k], with positions aligned at the bottom right."""


def t5_relative_position_bucket(
    relative_position: Tensor, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """The bucket of each relative position, key − query; buckets grow with distance."""
