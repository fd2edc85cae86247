"""RMSNorm in float32 with a fixed eps."""

import torch

EPS = 1e-5


def rms_norm(x, weight):
    h = x.float()
    h = h * torch.rsqrt(h.pow(2).sum(-1, keepdim=True) + EPS)
    return (h * weight.float()).to(x.dtype)
