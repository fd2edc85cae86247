"""A kernel with its own backward pass, from which beta is missing."""

import torch
from torch import nn


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return torch.logaddexp(2 * z, torch.zeros_like(z)) / 2

    @staticmethod
    def backward(ctx, dy):
        (z,) = ctx.saved_tensors
        return dy * torch.sigmoid(z)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return Softplus.apply(self.inner(x)).mean(1)
