import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden, p):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.p = p

    def forward(self, x):
        return F.dropout(self.down(F.relu(self.up(x))), self.p, self.training)


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return [32, 48, 0.25]
