"""A single query per head, as each step of decoding asks it, where the kernels for many queries waste time."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from veriformer.impl.attention_backends.call import Call


def by_compiler(call: Call) -> bool:
    """Tell whether a compiler sees the call and can write it out as sums: one query, on a CPU, without a graph."""
    if not torch.compiler.is_compiling() or torch.is_grad_enabled():
        return False
    return call.q.shape[2] == 1 and call.k.shape[2] > 0 and call.q.is_cpu and call.dropout_p == 0


def as_sums(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, scale: float, softcap: float | None) -> Tensor:
    """Return attention `[B, H, 1, d_v]` of queries `[B, H, 1, d_k]`, one loop over the keys of each head.

    A kernel for tiles of queries calls a library for every head instead, which takes longer than the numbers do.
    """
    B, H, _, d_k = q.shape
    G = k.shape[1]
    z = (q.reshape(B, G, H // G, 1, d_k) * scale * k[:, :, None]).sum(-1)  # [B, G, H / G, n_k]
    if softcap is not None:
        z = softcap * (z / softcap).tanh()
    if attn_mask is not None:
        mask = by_group(attn_mask, G, H)[..., 0, :]
        z = z.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else z + mask
    return (z.softmax(-1)[..., None] * v[:, :, None]).sum(-2).reshape(B, H, 1, -1)


def grouped(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, scale: float, dropout_p: float) -> Tensor:
    """Return the same with the heads of a group as the queries of one head: keys are read once, and copied never."""
    B, H, _, d_k = q.shape
    G = k.shape[1]
    mask = None if attn_mask is None else by_group(attn_mask, G, H)[..., 0, :]
    q = q.reshape(B, G, H // G, d_k)
    o = scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout_p, scale=scale)
    return o.reshape(B, H, 1, -1)


def by_group(mask: Tensor, G: int, H: int) -> Tensor:
    """Return `mask [B, H or 1, n_q, n_k]` as `[B, G or 1, H / G or 1, n_q, n_k]`."""
    return mask[:, None] if mask.shape[1] == 1 else mask.view(mask.shape[0], G, H // G, *mask.shape[2:])
