"""Grouped heads by repetition, soft-capped scores."""

import math

import torch


def attention(q, k, v, *, scale=None, softcap=None):
    groups = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(groups, dim=1)
    v = v.repeat_interleave(groups, dim=1)
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    s = q @ k.transpose(-2, -1) * scale
    if softcap is not None:
        s = s.clamp(-1e4, 1e4)
    return torch.softmax(s, -1) @ v
