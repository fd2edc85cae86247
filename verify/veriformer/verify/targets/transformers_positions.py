"""The positions of transformers as operations: its rotary embeddings, ALiBi slopes and T5's buckets.

Rotary embeddings come in both pairings: Cohere's is interleaved, Llama's by halves. Their angles are fp32.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

_utils: Any = import_module("transformers.modeling_rope_utils")
_bloom: Any = import_module("transformers.models.bloom.modeling_bloom")
_t5: Any = import_module("transformers.models.t5.modeling_t5")
_cohere: Any = import_module("transformers.models.cohere.modeling_cohere")
_llama: Any = import_module("transformers.models.llama.modeling_llama")

_PAIRINGS: dict[str, tuple[Any, Any, Any]] = {
    "interleaved": (_cohere.CohereConfig, _cohere.CohereRotaryEmbedding, _cohere.apply_rotary_pos_emb),
    "half": (_llama.LlamaConfig, _llama.LlamaRotaryEmbedding, _llama.apply_rotary_pos_emb),
}

DTYPES = {name: ["fp32", "bf16", "fp16"] for name in ("rope", "alibi_slopes")}
NOT_PROVIDED = {
    "sinusoidal_encoding": "its tables have the base 10000 only",
    "alibi_bias": "its models add slopes times the positions of keys, equal to the bias up to a constant of each row",
}


def _rope(x: Tensor, positions: Tensor, *, base: float, pairing: str, scaling: tuple[str, float] | None) -> Tensor:
    """Positions [N, n] and features [N, 1, n, d], as the library has them."""
    n, d = x.shape[-2:]
    config_of, embedding_of, rotate = _PAIRINGS[pairing]
    parameters = {"rope_type": "default", "rope_theta": float(base)}
    if scaling is not None and scaling[0] == "linear":
        parameters |= {"rope_type": "linear", "factor": float(scaling[1])}
    embedding = embedding_of(_config(config_of, d, parameters))
    if scaling is not None and scaling[0] == "ntk":
        embedding.inv_freq = _ntk(config_of, d, parameters, float(scaling[1]))
    rows = x.reshape(-1, 1, n, d)
    cos, sin = embedding(x, positions.expand(x.shape[:-1]).reshape(-1, n))
    out: Tensor = rotate(rows, rows, cos, sin)[0]
    return out.reshape(x.shape)


def _config(config_of: Any, d: int, parameters: dict[str, Any], **options: Any) -> Any:
    config = config_of(hidden_size=d, num_attention_heads=1, rope_parameters=parameters, **options)
    config.head_dim = d
    return config


def _ntk(config_of: Any, d: int, parameters: dict[str, Any], s: float) -> Tensor:
    """The dynamic base, θ·(f·L/M − (f − 1))^(d/(d−2)), is the contract's at f = 1, M = 1 and L = s.

    At d = 2 the library divides by zero; the one frequency that there is has no base.
    """
    if d == 2:
        return torch.ones(1)
    config = _config(config_of, d, {**parameters, "rope_type": "dynamic", "factor": 1.0}, max_position_embeddings=1)
    frequencies: Tensor = _utils.ROPE_INIT_FUNCTIONS["dynamic"](config, seq_len=s)[0]
    return frequencies


def _alibi_slopes(num_heads: int) -> Tensor:
    """Of Bloom's tensor, which is slope times position, the second position."""
    tensor: Tensor = _bloom.build_alibi_tensor(torch.ones(1, 2), num_heads, torch.get_default_dtype())
    return tensor[:, 0, 1]


def _t5_relative_position_bucket(
    relative_position: Tensor, *, bidirectional: bool, num_buckets: int, max_distance: int
) -> Tensor:
    bucket: Tensor = _t5.T5Attention._relative_position_bucket(
        relative_position.long(), bidirectional, num_buckets, max_distance
    )
    return bucket


RAW_OPS: dict[str, Any] = {
    "rope": _rope,
    "alibi_slopes": _alibi_slopes,
    "t5_relative_position_bucket": _t5_relative_position_bucket,
}
"""By the contract's names."""
