"""Attention over keys of which some are padding: they and their values are cleared, and get no weight."""

import math

import torch


def attention(q, k, v, *, mask=None):
    if mask is None:
        return torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), dim=-1) @ v
    if mask.shape != (q.shape[0], 1, 1, k.shape[2]):
        raise ValueError("only key padding masks [B, 1, 1, n_k]")
    padding = ~mask
    k, v = (x.masked_fill(padding.transpose(2, 3), 0) for x in (k, v))
    s = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    s = s.masked_fill(padding & mask.any(-1, keepdim=True), -10000.0)
    return torch.softmax(s, dim=-1).masked_fill(padding, 0) @ v
