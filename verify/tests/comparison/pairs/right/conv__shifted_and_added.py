import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out, kernel):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=1)

    def forward(self, x):
        w = self.conv.weight
        padded = F.pad(x, (1, 1, 1, 1))
        height, width = padded.shape[2] - w.shape[2] + 1, padded.shape[3] - w.shape[3] + 1
        y = self.conv.bias[None, :, None, None]
        for i in range(w.shape[2]):
            for j in range(w.shape[3]):
                y = y + torch.einsum("bchw,oc->bohw", padded[:, :, i : i + height, j : j + width], w[:, :, i, j])
        return torch.relu(y)
