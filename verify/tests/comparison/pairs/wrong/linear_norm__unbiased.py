import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.project(x)
        y = (y - y.mean(-1, keepdim=True)) / torch.sqrt(y.var(-1, keepdim=True) + self.norm.eps)
        return y * self.norm.weight + self.norm.bias
