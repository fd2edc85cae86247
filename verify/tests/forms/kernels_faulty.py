"""Operations of kernels.py, each with a fault."""

import torch
from torch.autograd import Function


class LayerNormFunction(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        rstd = 1 / torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(centred * rstd, rstd, weight)
        return centred * rstd * (weight + bias)

    @staticmethod
    def backward(ctx, dy):
        unit, rstd, weight = ctx.saved_tensors
        rows = dy * weight
        dx = rows - rows.mean(-1, keepdim=True) - unit * (rows * unit).mean(-1, keepdim=True)
        leading = tuple(range(dy.ndim - 1))
        return dx * rstd, (dy * unit).sum(leading), dy.sum(leading), None


def rms_norm(x, normalized_shape, weight, eps=1e-6):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    return x * torch.rsqrt((x * x).mean(axes, keepdim=True) + eps) + weight


def swiglu_forward(a, b):
    c = torch.nn.functional.silu(a) + b
    return a, b, c


def silu_and_mul(x):
    value, gate = x.chunk(2, -1)
    return torch.sigmoid(value) * gate


def swiglu_backward(dc, a, b):
    return dc * b, dc * torch.nn.functional.silu(a)


def fast_rms_layernorm(X, W, eps=1e-6):
    return X / torch.sqrt((X * X).mean(-1, keepdim=True) + eps) + W
