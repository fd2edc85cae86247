import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        mean = torch.einsum("...i,...i->...", x, x)[..., None] / x.shape[-1]
        return x / torch.sqrt(mean + self.eps) * self.weight
