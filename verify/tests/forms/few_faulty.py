"""Two functions, one of them with a fault."""

import torch


def swish(x):
    return x * torch.sigmoid(2 * x)


def subsequent_mask(size):
    return torch.triu(torch.ones(size, size), diagonal=1).bool()
