"""The operands cut to 10 bits, as tensor cores do."""

import torch
from torch import nn


def rounded(x):
    bits = x.float().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (rounded(a) @ rounded(b)).to(a.dtype)
