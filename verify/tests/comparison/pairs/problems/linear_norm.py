import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(self.project(x))


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [64]
