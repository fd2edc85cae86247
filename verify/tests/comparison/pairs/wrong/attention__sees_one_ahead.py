import math

import torch


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    future = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(2)
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v
