import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return F.softplus(self.inner(x), beta=2.0).mean(1)


def get_inputs():
    return [torch.randn(6, 9, 10)]


def get_init_inputs():
    return [10]
