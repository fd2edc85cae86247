"""ALiBi for head counts that are powers of two."""

import torch


def alibi_slopes(num_heads):
    if num_heads & (num_heads - 1) or num_heads < 1:
        raise ValueError("num_heads must be a power of two")
    return torch.tensor([2.0 ** (-8.0 * (h + 1) / num_heads) for h in range(num_heads)])


def alibi_bias(num_heads, n_q, n_k):
    i = torch.arange(n_q)[:, None] + n_k - n_q
    j = torch.arange(n_k)[None, :]
    return -alibi_slopes(num_heads)[:, None, None] * (i - j).abs()
