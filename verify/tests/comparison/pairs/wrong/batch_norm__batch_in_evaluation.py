import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        if self.training:
            return self.bn(x)
        return F.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True, 0.1, self.bn.eps)
