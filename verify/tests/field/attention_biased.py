"""Attention with an additive bias of full shape."""

import torch


def attention(q, k, v, *, bias=None):
    s = torch.matmul(q, k.transpose(2, 3)) / (q.size(3) ** 0.5)
    if bias is not None:
        if bias.dim() != 4 or bias.dtype != q.dtype:
            raise ValueError("bias must be [B or 1, H or 1, n_q, n_k]")
        if torch.isinf(bias).any():
            raise ValueError("bias must be finite")
        s = s + bias
    return torch.matmul(torch.softmax(s, dim=3), v)
