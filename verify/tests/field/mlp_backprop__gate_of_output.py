"""Two layers and their derivatives written out, as in a first course."""

import torch


class _MLP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w1, b1, w2, b2):
        z1 = x @ w1 + b1
        h1 = torch.clamp(z1, min=0)
        ctx.save_for_backward(x, w1, w2, z1, h1)
        return h1 @ w2 + b2

    @staticmethod
    def backward(ctx, dz2):
        x, w1, w2, z1, h1 = ctx.saved_tensors
        dw2 = h1.T @ dz2
        db2 = dz2.sum(0)
        dz1 = (dz2 @ w2.T) * (z1.abs() > 0)
        dw1 = x.T @ dz1
        db1 = dz1.sum(0)
        return dz1 @ w1.T, dw1, db1, dw2, db2


def mlp(x, w1, b1, w2, b2):
    assert x.ndim == 2
    return _MLP.apply(x, w1, b1, w2, b2)
