"""Where a token stands: its position, and what a model makes of it."""

import torch
from torch import Tensor, nn

from veriformer.impl.layers.token_embedding import look_up
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.positions.alibi import alibi_bias
from veriformer.impl.positions.angles import cosines_and_sines, frequencies
from veriformer.impl.positions.t5 import t5_relative_position_bucket

Rotation = tuple[Tensor, Tensor]


def token_positions(
    ids: Tensor, past: int = 0, attention_mask: Tensor | None = None, documents: Tensor | None = None
) -> Tensor:
    """Return the place of each token among the real tokens of its row, or within its document: int64 `[B or 1, n]`."""
    n = ids.shape[1]
    if documents is not None:
        index = torch.arange(n, device=ids.device)[None]
        first = torch.ones_like(documents, dtype=torch.bool)
        first[:, 1:] = documents[:, 1:] != documents[:, :-1]
        return index - (index * first).cummax(-1).values
    if attention_mask is not None:
        return (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, past:]
    return torch.arange(past, past + n, device=ids.device)[None]


def rotation(config: ModelConfig, positions: Tensor, dtype: torch.dtype) -> Rotation | None:
    """Return the cosines and sines of RoPE for every layer, `[B or 1, 1, n, d_k / 2]`. Equations 30 and 31."""
    if config.position != "rope":
        return None
    theta = frequencies(config.d_k, config.rope_base, config.rope_scaling, positions.device)
    cos, sin = cosines_and_sines(positions[:, None], theta)
    return cos.to(dtype), sin.to(dtype)


def alibi(config: ModelConfig, n_q: int, n_k: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return −m·|i − j| for the slope m of each head, `[1, H, n_q, n_k]`."""
    return alibi_bias(config.num_heads, n_q, n_k).to(device, dtype)[None]


class RelativeBias(nn.Module):
    """T5's bias: a learned number for each head and each bucket of distances, shared by all layers of a stack."""

    bucket: Tensor

    def __init__(self, config: ModelConfig, bidirectional: bool) -> None:
        super().__init__()
        M = self.reach = config.t5_max_distance  # all that is further shares a bucket
        near = torch.arange(-M, M + 1)
        options = {"num_buckets": config.t5_buckets, "max_distance": M}
        bucket = t5_relative_position_bucket(near, bidirectional=bidirectional, **options)
        self.register_buffer("bucket", bucket, persistent=False)
        self.weight = nn.Parameter(torch.empty(config.t5_buckets, config.num_heads))

    def forward(self, n_q: int, n_k: int) -> Tensor:
        """Return the bias `[1, H, n_q, n_k]`, with the last query at the last key."""
        i = torch.arange(n_k - n_q, n_k, device=self.weight.device)
        j = torch.arange(n_k, device=self.weight.device)
        bucket = self.bucket[(j - i[:, None]).clamp(-self.reach, self.reach) + self.reach]
        return look_up(bucket, self.weight).permute(2, 0, 1)[None]
