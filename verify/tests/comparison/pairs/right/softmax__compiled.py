import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.run = torch.compile(lambda x: torch.softmax(x, -1), dynamic=True)

    def forward(self, x):
        return self.run(x)
