"""The inner axis in four parts, added at the end."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        parts = zip(a.chunk(4, 1), b.chunk(4, 0), strict=True)
        return torch.stack([x @ y for x, y in parts]).sum(0)
