"""The linear map as a module, its matrix on the right."""

import torch
from torch import Tensor, nn

from veriformer.impl.linear import linear


class Linear(nn.Module):
    """y = x W + b with `weight [n_in, n_out]`, as the contract writes it."""

    def __init__(self, n_in: int, n_out: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return `[..., n_out]` for `x [..., n_in]`."""
        return linear(x, self.weight, self.bias)
