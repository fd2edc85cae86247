import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out, kernel):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=1)

    def forward(self, x):
        w = self.conv.weight
        columns = F.unfold(x, w.shape[2:], padding=1)
        y = w.flatten(1) @ columns + self.conv.bias[:, None]
        height, width = (n + 3 - k for n, k in zip(x.shape[2:], w.shape[2:], strict=True))
        return torch.relu(y.view(x.shape[0], w.shape[0], height, width))
