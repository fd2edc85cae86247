import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, hidden, p):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        hidden = torch.addmm(self.up.bias, x, self.up.weight.t()).relu_()
        return self.drop(torch.addmm(self.down.bias, hidden, self.down.weight.t()))
