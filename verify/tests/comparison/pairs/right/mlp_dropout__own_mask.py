"""Samples of an equal distribution, drawn by another call."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, hidden, p):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.p = p

    def forward(self, x):
        y = self.down(F.relu(self.up(x)))
        return y * (torch.rand_like(y) >= self.p) / (1 - self.p) if self.training else y
