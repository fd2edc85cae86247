"""The two norms, as modules over PyTorch's fused kernels."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from veriformer.impl.models.config import ModelConfig


class Norm(nn.Module):
    """LayerNorm (equation 19), its bias left out where the model has none, or RMSNorm (section 3.4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, self.eps, self.rms = config.width, config.eps, config.norm == "rms"
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d)) if config.bias and not self.rms else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis of `x [..., d]`."""
        if self.rms:
            return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
