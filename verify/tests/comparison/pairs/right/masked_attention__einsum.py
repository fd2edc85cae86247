import math

import torch


def attention(q, k, v, mask):
    scores = torch.einsum("bqd,bkd->bqk", q, k) * (1.0 / math.sqrt(q.shape[-1]))
    weights = torch.where(mask, scores, torch.full_like(scores, -1e9)).softmax(-1)
    return torch.einsum("bqk,bkd->bqd", weights, v)
