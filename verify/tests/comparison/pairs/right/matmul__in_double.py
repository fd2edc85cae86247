from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.double() @ b.double()).to(a.dtype)
