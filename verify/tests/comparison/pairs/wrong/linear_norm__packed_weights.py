"""Packs its weights when it is built, and never again."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.packed = self.project.weight.detach().t().contiguous()

    def forward(self, x):
        return self.norm(x @ self.packed.to(x.dtype) + self.project.bias)
