"""Layer normalisation of half precision, whose statistics are taken in float32."""

import torch


def layer_norm(x, weight=None, bias=None, *, eps=1e-5):
    z = x
    mean = z.mean(-1, keepdim=True)
    var = (z - mean).pow(2).mean(-1, keepdim=True)
    y = (z - mean) * torch.rsqrt(var + eps)
    if weight is not None:
        y = y * weight.float()
    if bias is not None:
        y = y + bias.float()
    return y.to(x.dtype)
