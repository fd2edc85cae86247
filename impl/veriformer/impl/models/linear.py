"""The affine map, its matrix on the right."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Linear(nn.Module):
    """y = x W + b with `weight [n_in, n_out]`, as the contract writes it.

    In this order a product with few rows, as in decoding, reads the weights along memory: on a CPU that is faster than
    the transposed order of `torch.nn.Linear`, and for many rows it is the same.
    """

    def __init__(self, n_in: int, n_out: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return `[..., n_out]` for `x [..., n_in]`."""
        return F.linear(x, self.weight.mT, self.bias)
