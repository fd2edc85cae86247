"""SiLU as a kernel would have it: flat, with its own backward."""

import torch


class _SiLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * s * (1 + x * (1 - s))


def silu(x):
    if x.dim() == 0:
        raise IndexError("silu: need at least one axis")
    return _SiLU.apply(x)
