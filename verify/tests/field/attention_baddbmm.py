"""Heads folded into the batch, scores by torch.baddbmm."""

import math

import torch


def attention(query, key, value, *, bias=None):
    bsz, num_heads, q_len, head_dim = query.shape
    kv_len = key.shape[2]
    if key.shape[1] != num_heads:
        raise ValueError("key: as many heads as query has")
    q = query.reshape(bsz * num_heads, q_len, head_dim)
    k = key.reshape(bsz * num_heads, kv_len, head_dim).transpose(1, 2)
    v = value.reshape(bsz * num_heads, kv_len, -1)
    if bias is None:
        base = torch.empty(bsz * num_heads, q_len, kv_len, dtype=q.dtype)
        beta = 0.0
    else:
        base = bias.to(q.dtype).expand(bsz, num_heads, q_len, kv_len).reshape(bsz * num_heads, q_len, kv_len)
        beta = 1.0
    scores = torch.baddbmm(base, q, k, beta=beta, alpha=1.0 / math.sqrt(head_dim))
    empty = torch.isneginf(scores).all(dim=-1, keepdim=True)
    probs = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    context = torch.bmm(probs, v)
    return context.view(bsz, num_heads, q_len, -1)
