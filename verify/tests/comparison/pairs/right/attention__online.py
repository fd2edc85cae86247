"""Blocks of keys with a running maximum and sum, as flash attention does."""

import math

import torch


def attention(q, k, v):
    length = q.shape[-2]
    scale = 1 / math.sqrt(q.shape[-1])
    top = q.new_full((*q.shape[:-1], 1), float("-inf"))
    total, result = torch.zeros_like(top), torch.zeros_like(q[..., :1] * v[..., :1, :])
    rows = torch.arange(length)[:, None]
    for start in range(0, k.shape[-2], 8):
        keys, values = k[..., start : start + 8, :], v[..., start : start + 8, :]
        hidden = torch.arange(start, start + keys.shape[-2])[None] > rows
        scores = ((q * scale) @ keys.transpose(-2, -1)).masked_fill(hidden, float("-inf"))
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        weights, rescale = torch.exp(scores - new), torch.exp(top - new)
        total = total * rescale + weights.sum(-1, keepdim=True)
        result, top = result * rescale + weights @ values, new
    return result / total
