import math

import torch


def attention(q, k, v, mask):
    """Attention where mask is true; q, k, v: [batch, length, width], mask: [batch, 1, length]."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) @ v


def get_inputs():
    q, k, v = (torch.randn(3, 20, 12) for _ in range(3))
    return [q, k, v, torch.rand(3, 1, 20) < 0.8]
