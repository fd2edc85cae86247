"""Causal attention, one query after the other over what it sees."""

import torch


def attention(q, k, v, *, is_causal=False, scale=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    assert n_q <= n_k or not is_causal
    if scale is None:
        scale = q.shape[-1] ** -0.5
    s = q @ k.mT * scale
    if is_causal:
        ahead = torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + 1)
        s = s.masked_fill(ahead, float("-inf"))
    return s.softmax(-1) @ v
