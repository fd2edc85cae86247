"""A kernel-like front: head sizes of a set, equal widths, contiguous inputs."""

import torch


def attention(q, k, v):
    if q.shape[-1] not in (16, 32, 64) or v.shape[-1] != q.shape[-1]:
        raise RuntimeError(f"head size {q.shape[-1]} is not supported")
    B, H, n, d = q.shape
    out = torch.empty_like(q)
    for b in range(B):
        for h in range(H):
            s = torch.mm(q[b, h], k[b, h].t()).mul(d**-0.5)
            s = s - s.max(dim=1, keepdim=True).values
            p = torch.exp(s)
            out[b, h] = torch.mm(p, v[b, h]).div(p.sum(dim=1, keepdim=True))
    return out
