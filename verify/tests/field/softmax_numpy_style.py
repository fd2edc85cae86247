"""Softmax and log-sum-exp the NumPy way: any axis, keepdims."""

import torch


def logsumexp(z, dim=-1):
    top = torch.amax(z, axis=dim, keepdims=True).detach()
    top = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
    total = torch.sum(torch.exp(z - top), axis=dim)
    return torch.log(total) + top.squeeze(dim)


def softmax(z, dim=-1):
    e = z - torch.amax(z, axis=dim, keepdims=True)
    e = torch.exp(e)
    return e / torch.sum(e, axis=dim, keepdims=True)
