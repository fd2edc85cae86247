"""Sliding-window attention of the kind that long-context models use."""

import torch


def attention(q, k, v, *, is_causal=False, window=None):
    n = q.shape[-2]
    if k.shape[-2] != n:
        raise ValueError("queries and keys must be of one length")
    if window is not None and not is_causal:
        raise ValueError("a window needs is_causal=True")
    out = torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for i in range(n):
        lo = max(0, n - window) if window is not None and i == n - 1 else 0
        hi = i + 1 if is_causal else n
        s = torch.einsum("bhd,bhjd->bhj", q[:, :, i], k[:, :, lo:hi]) / q.shape[-1] ** 0.5
        out[:, :, i] = torch.einsum("bhj,bhjd->bhd", s.softmax(-1), v[:, :, lo:hi])
    return out
