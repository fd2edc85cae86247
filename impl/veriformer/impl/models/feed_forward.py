"""The network between two attentions: each token for itself."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from veriformer.impl.layers.feed_forward import network
from veriformer.impl.layers.mixture_of_experts import mixture_of_experts
from veriformer.impl.layers.swiglu import gated_network
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.linear import Linear

_GELU_TANH = partial(F.gelu, approximate="tanh")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": _GELU_TANH,
    "relu": F.relu,
    "swiglu": F.silu,
    "geglu": _GELU_TANH,
}


class FeedForward(nn.Module):
    """Widen, bend, narrow (equation 36); gated, the bent half multiplies the other: (σ(x W_gate) · x W_up) W_down."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, h = config.d_model, config.d_ff
        self.activation, self.gated = ACTIVATIONS[config.activation], config.gated
        self.up = Linear(d, 2 * h if self.gated else h, bias=config.bias)  # gated: [W_gate, W_up] in one product
        self.down = Linear(h, d, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, n, d]` for `x [B, n, d]`."""
        up, down = self.up, self.down
        if self.gated:
            gate, value = up(x).chunk(2, -1)
            return gated_network(gate, value, down.weight, down.bias, self.activation)
        return network(x, up.weight, up.bias, down.weight, down.bias, self.activation)


class MixtureOfExperts(nn.Module):
    """Each token visits the `experts_per_token` experts that its router scores highest, gates softmaxed over those."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, h, E = config.d_model, config.d_ff, config.num_experts
        self.top_k = config.experts_per_token
        self.router = nn.Parameter(torch.empty(d, E))
        self.w1, self.b1 = nn.Parameter(torch.empty(E, d, h)), nn.Parameter(torch.zeros(E, h))
        self.w2, self.b2 = nn.Parameter(torch.empty(E, h, d)), nn.Parameter(torch.zeros(E, d))

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, n, d]` for `x [B, n, d]`."""
        return mixture_of_experts(x, self.router, self.w1, self.b1, self.w2, self.b2, top_k=self.top_k)
