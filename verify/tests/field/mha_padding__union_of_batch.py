"""Multi-head attention over padded batches, one sequence at a time over its real keys."""

import torch


def multi_head_attention(x, w_q, w_k, w_v, w_o, *, num_heads, attention_mask=None):
    if attention_mask is not None and attention_mask.shape != x.shape[:2]:
        raise ValueError("attention_mask must be [B, n]")
    out = []
    for b in range(x.shape[0]):
        keys = x[b]
        if attention_mask is not None:
            keys = x[b][attention_mask.bool().any(0)]
        q, k, v = (
            (rows @ w).unflatten(-1, (num_heads, -1)).transpose(0, 1)
            for rows, w in ((x[b], w_q), (keys, w_k), (keys, w_v))
        )
        y = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
        out.append(y.transpose(0, 1).flatten(1) @ w_o)
    return torch.stack(out)
