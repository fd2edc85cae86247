"""From vectors to logits."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from veriformer.impl.layers.lm_head import logits_of
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.linear import Linear
from veriformer.impl.models.norm import Norm


class Head(nn.Module):
    """Logits h Wᵀ (equation 40), W being the embedding itself where the two are tied.

    The tied weight is handed in and never owned, so that no loading, moving or sharding can take the two apart.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        V, d = config.vocab_size, config.d_model
        self.config = config
        if config.head_transform:
            self.transform, self.norm = Linear(d, d), Norm(config)
        self.weight = None if config.tied else nn.Parameter(torch.empty(V, d))
        self.bias = nn.Parameter(torch.zeros(V)) if config.head_bias else None

    def head_input(self, h: Tensor) -> Tensor:
        """Return what the weight multiplies, `[..., d]`."""
        if self.config.head_transform:
            h = self.norm(F.gelu(self.transform(h)))
        return h if self.config.logit_scale == 1 else h * self.config.logit_scale

    def forward(self, h: Tensor, embedding: Tensor) -> Tensor:
        """Return the logits `[B, n, V]` of `h [B, n, d]`."""
        return logits_of(self.head_input(h), embedding if self.weight is None else self.weight, self.bias)
