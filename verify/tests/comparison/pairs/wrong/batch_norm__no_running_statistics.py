import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        bn = self.bn
        mean, var = (None, None) if self.training else (bn.running_mean, bn.running_var)
        return F.batch_norm(x, mean, var, bn.weight, bn.bias, self.training, bn.momentum, bn.eps)
