"""Eager attention with a boolean mask; the softmax is taken in float32 for half precision."""

import torch
from torch import nn


def eager_attention(q, k, v, keep):
    scaling = q.size(-1) ** -0.5
    weights = torch.matmul(q, k.transpose(2, 3)) * scaling
    if keep is not None:
        weights = weights.masked_fill(~keep, float("-inf"))
        empty = ~keep.any(-1, keepdim=True)
        weights = weights.masked_fill(empty, 0.0)
    upcast = torch.float32 if weights.dtype in (torch.float16, torch.bfloat16) else weights.dtype
    weights = nn.functional.softmax(weights, dim=-1, dtype=upcast).to(q.dtype)
    return torch.matmul(weights, v)


def attention(q, k, v, *, mask=None):
    if q.shape[1] != k.shape[1]:
        raise ValueError("grouped heads are not supported")
    if mask is not None:
        seen = mask.expand(*q.shape[:3], k.shape[2]).any(2)[..., None]
        hidden = ~seen & seen.any(-2, keepdim=True)
        k, v = k.masked_fill(hidden, 0.0), v.masked_fill(hidden, 0.0)
        if mask.dim() != 4 or mask.shape[2] != 1:
            raise ValueError("mask: [B, 1 or H, 1, n_k]")
    return eager_attention(q, k, v, mask)
