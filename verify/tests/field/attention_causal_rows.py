"""Causal attention, one query after the other over what it sees."""

import torch


def attention(q, k, v, *, is_causal=False, scale=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    assert n_q <= n_k or not is_causal
    if scale is None:
        scale = q.shape[-1] ** -0.5
    rows = []
    for i in range(n_q):
        end = i + 1 + n_k - n_q if is_causal else n_k
        s = q[..., i : i + 1, :] @ k[..., :end, :].mT * scale
        rows.append(s.softmax(-1) @ v[..., :end, :])
    return torch.cat(rows, dim=-2)
