import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(64, 256), torch.rand(256, 48)]


def get_init_inputs():
    return []
