import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        e = torch.exp2((x - x.amax(-1, keepdim=True)) * 1.4426950408889634)
        return e / e.sum(-1, keepdim=True)
