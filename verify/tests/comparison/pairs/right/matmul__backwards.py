"""The terms in the other order, in blocks, added to a buffer of its own."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        result = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
        for x, y in reversed(list(zip(a.split(16, 1), b.split(16, 0), strict=True))):
            result = torch.addmm(result, x, y)
        return result
