"""The positions of x-transformers as operations: rotary embeddings, ALiBi, T5's buckets and sinusoids, all in fp32."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

_library: Any = import_module("x_transformers.x_transformers")

_NARROW = ["fp32", "bf16", "fp16"]
DTYPES = dict.fromkeys(("rope", "sinusoidal_encoding", "alibi_slopes", "alibi_bias"), _NARROW)


def _sinusoidal_encoding(num_positions: int, d_model: int, *, base: float) -> Tensor:
    """Its sines come before its cosines, times a number that is learned: here 1."""
    module = _library.ScaledSinusoidalEmbedding(int(d_model), theta=float(base))
    rows = torch.empty(1, int(num_positions), dtype=torch.int64)
    table: Tensor = torch.func.functional_call(module, {"scale": torch.ones(1)}, (rows,))
    return table.reshape(-1, 2, d_model // 2).mT.flatten(-2).to(torch.get_default_dtype())


def _rope(x: Tensor, positions: Tensor, *, base: float, pairing: str, scaling: tuple[str, float] | None) -> Tensor:
    """Call the library's embedding, which pairs neighbours; halves are laid side by side first.

    Width 2, for which it divides by zero, takes the first pair of width 4: its frequency is 1 too. Its factor of
    interpolation is 1 or more; positions are divided by a smaller one.
    """
    n, d = x.shape[-2:]
    kind, s = (None, 1.0) if scaling is None else (scaling[0], float(scaling[1]))
    options = {"base_rescale_factor": s} if kind == "ntk" else {"interpolation_factor": max(s, 1.0)}
    embedding = _library.RotaryEmbedding(max(d, 4), base=float(base), **options)
    t = positions.expand(x.shape[:-1]).reshape(-1, n)
    angles, scale = embedding(t.float() / s if kind == "linear" and s < 1 else t)
    rows = x.reshape(-1, 1, n, d)
    if pairing == "half":
        rows = rows.reshape(-1, 1, n, 2, d // 2).mT.flatten(-2)
    out: Tensor = _library.apply_rotary_pos_emb(rows, angles[..., :d], scale)
    if pairing == "half":
        out = out.reshape(-1, 1, n, d // 2, 2).mT.flatten(-2)
    return out.reshape(x.shape)


def _alibi_slopes(num_heads: int) -> Tensor:
    slopes: Tensor = _library.AlibiPositionalBias(int(num_heads)).slopes
    return slopes.flatten()


def _alibi_bias(num_heads: int, n_q: int, n_k: int) -> Tensor:
    """An axis of no length, which it does not take, is cut from one of length 1."""
    bias: Tensor = _library.AlibiPositionalBias(int(num_heads))(max(int(n_q), 1), max(int(n_k), 1))
    return bias[:, :n_q, :n_k]


def _t5_relative_position_bucket(
    relative_position: Tensor, *, bidirectional: bool, num_buckets: int, max_distance: int
) -> Tensor:
    bucket: Tensor = _library.RelativePositionBias._relative_position_bucket(
        relative_position.long(), not bidirectional, num_buckets, max_distance
    )
    return bucket


RAW_OPS: dict[str, Any] = {
    "sinusoidal_encoding": _sinusoidal_encoding,
    "rope": _rope,
    "alibi_slopes": _alibi_slopes,
    "alibi_bias": _alibi_bias,
    "t5_relative_position_bucket": _t5_relative_position_bucket,
}
"""By the contract's names."""
