"""Normalisations as public files write them: without eps, and with sizes that have other names."""

from dataclasses import dataclass

import torch
from torch import nn


class BareRMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))


class WideRMSNorm(nn.Module):
    """Add a number that is no epsilon."""

    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 2.0)


class DeafRMSNorm(nn.Module):
    """Its eps is taken and not used."""

    def __init__(self, dim, eps=1e-3):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


@dataclass
class NormConfig:
    hidden_size: int = 64
    rms_norm_eps: float = 1e-3


class ConfiguredRMSNorm(nn.Module):
    def __init__(self, config: NormConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.eps = config.rms_norm_eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class ShapedRMSNorm(nn.Module):
    def __init__(self, layer_shape):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(layer_shape))

    def forward(self, x):
        return self.scale * x / (torch.linalg.norm(x, dim=-1, keepdim=True) * x.shape[-1] ** -0.5)


class ShapedLayerNorm(nn.Module):
    """Normalises the last axis, or several."""

    def __init__(self, normalized_shape, *, eps=1e-5, elementwise_affine=True):
        super().__init__()
        self.shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        if elementwise_affine:
            self.gain = nn.Parameter(torch.ones(self.shape))
            self.bias = nn.Parameter(torch.zeros(self.shape))

    def axes(self):
        return [-1 - i for i in range(len(self.shape))]

    def forward(self, x):
        apart = x - x.mean(self.axes(), keepdim=True)
        y = apart / torch.sqrt(apart.pow(2).mean(self.axes(), keepdim=True) + self.eps)
        return self.gain * y + self.bias if self.elementwise_affine else y


class LastAxisShapedLayerNorm(ShapedLayerNorm):
    def axes(self):
        return [-1]


class AlongRMSNorm(nn.Module):
    def __init__(self, size, dim=-1, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps, self.dim = eps, dim

    def forward(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(self.dim, keepdim=True) + self.eps)


class DeafAxisRMSNorm(AlongRMSNorm):
    def forward(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)


def rms_norm_ref(x, weight, residual=None, x1=None, eps=1e-6, rowscale=None, prenorm=False):
    if rowscale is not None:
        x = x * rowscale[..., None]
    if x1 is not None:
        x = x + x1
    if residual is not None:
        x = x + residual
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
    return (y, x) if prenorm else y


def deaf_rms_norm_ref(x, weight, residual=None, x1=None, eps=1e-6, rowscale=None, prenorm=False):
    return rms_norm_ref(x, weight, None, x1, eps, rowscale, prenorm)
