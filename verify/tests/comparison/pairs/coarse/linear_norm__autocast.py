import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.project(x)
        return self.norm(y.to(x.dtype))
