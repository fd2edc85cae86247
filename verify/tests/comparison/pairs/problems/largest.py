import torch


def largest(x):
    return torch.topk(x, 5, dim=-1)


def get_inputs():
    return [torch.randn(20, 64)]
