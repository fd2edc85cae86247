"""The two norms as modules."""

import torch
from torch import Tensor, nn

from veriformer.impl.layers.layer_norm import normalize
from veriformer.impl.layers.rms_norm import normalize_rms
from veriformer.impl.models.config import ModelConfig


class Norm(nn.Module):
    """LayerNorm (equation 19), its bias left out where the model has none, or RMSNorm (section 3.4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, self.eps, self.rms = config.d_model, config.eps, config.norm == "rms"
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d)) if config.bias and not self.rms else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis of `x [..., d]`."""
        if self.rms:
            return normalize_rms(x, self.weight, self.eps)
        return normalize(x, self.weight, self.bias, self.eps)
