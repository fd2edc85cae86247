"""A fused softmax of matrices with its own backward pass."""

import torch


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        p = (z - z.amax(dim=1, keepdim=True)).exp()
        p = p / p.sum(dim=1, keepdim=True)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(dim=1, keepdim=True))


def softmax(z, dim=-1):
    assert z.ndim == 2 and dim in (-1, 1)
    return _Softmax.apply(z)
