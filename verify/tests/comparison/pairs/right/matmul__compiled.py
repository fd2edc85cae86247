import torch
from torch import nn


@torch.compile(dynamic=True)
def product(a, b):
    return (a[:, :, None] * b[None]).sum(1)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return product(a, b)
