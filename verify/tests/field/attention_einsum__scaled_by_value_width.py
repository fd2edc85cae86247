"""Bidirectional attention in einsum style."""

import torch


def attention(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * v.shape[-1] ** -0.5
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)
