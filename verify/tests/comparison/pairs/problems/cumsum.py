import torch


def running(x):
    return torch.cumsum(x, dim=1)


def get_inputs():
    return [torch.rand(8, 200)]
