"""bfloat16 inside, single precision outside."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.bfloat16().float() @ b.bfloat16().float()).to(a.dtype)
