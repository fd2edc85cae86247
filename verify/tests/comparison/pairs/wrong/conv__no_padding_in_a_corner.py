import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out, kernel):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=1)

    def forward(self, x):
        y = torch.relu(self.conv(x)).clone()
        y[..., -1, -1] = y[..., -1, -2]
        return y
