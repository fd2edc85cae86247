import torch


def logsumexp(x):
    return torch.logsumexp(x, dim=-1)


def get_inputs():
    return [torch.randn(10, 64)]
