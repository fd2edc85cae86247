"""T5's norm: no mean is taken away, the variance is in float32."""

import torch
from torch import nn


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        x = hidden_states.to(torch.float32)
        x = self.weight * x
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return x.to(hidden_states.dtype)


def rms_norm(x, weight=None, *, eps=1e-6):
    module = T5LayerNorm(x.shape[-1], eps)
    if weight is None:
        return module(x)
    return torch.func.functional_call(module, {"weight": weight.float()}, (x,))
