"""LayerNorm that always computes in float32."""

import torch


def layer_norm(x, weight=None, bias=None, *, eps=1e-5):
    h = x.float()
    mu = h.mean(-1, keepdim=True)
    var = (h.square().mean(-1, keepdim=True) - mu * mu).clamp(min=0)
    h = (h - mu) / (var + eps).sqrt()
    if weight is not None:
        h = h * weight.float()
    if bias is not None:
        h = h + bias.float()
    return h.to(x.dtype)
