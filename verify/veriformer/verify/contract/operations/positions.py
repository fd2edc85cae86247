"""Positions: encodings, rotations, biases and buckets."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from torch import Tensor


def sinusoidal_encoding(num_positions: int, d_model: int, *, base: float = 10000.0) -> Tensor:
    """Sinusoidal positional encoding of positions from 0 on, sines and cosines interleaved (28, 29)."""


def rope(
    x: Tensor,
    positions: Tensor,
    *,
    base: float = 10000.0,
    pairing: str = "interleaved",
    scaling: tuple[str, float] | None = None,
) -> Tensor:
    """Rotary position embedding: pairs of features rotated by position · θ_i (30, 31)."""


def alibi_slopes(num_heads: int) -> Tensor:
    """ALiBi slopes m_h, [H]."""


def alibi_bias(num_heads: int, n_q: int, n_k: int) -> Tensor:
    """ALiBi bias −m_h · |i − j|, [H, n_q, n_k], positions aligned at the bottom right."""


def t5_relative_position_bucket(
    relative_position: Tensor, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """T5 bucket of each relative position, key − query."""
