"""Attention under a padding mask: each sequence is cut to its real keys."""

import torch


def attention(q, k, v, *, mask=None):
    if mask is None:
        mask = torch.ones(q.shape[0], 1, 1, k.shape[2], dtype=torch.bool)
    if mask.shape != (q.shape[0], 1, 1, k.shape[2]):
        raise ValueError("only key padding masks [B, 1, 1, n_k]")
    out = []
    for b in range(q.shape[0]):
        keep = mask[b, 0, 0]
        s = q[b] @ k[b][:, keep].transpose(1, 2) / q.shape[-1] ** 0.5
        out.append(torch.softmax(s, dim=-1) @ v[b][:, keep])
    return torch.stack(out)
