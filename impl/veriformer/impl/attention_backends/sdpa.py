"""Attention by PyTorch's own kernels, wherever they can express the call."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from veriformer.impl.attention_backends.arguments import backend
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.reference import dense
from veriformer.impl.attention_backends.single_query import as_sums, by_compiler, grouped
from veriformer.impl.precision import kernels_lose_digits, upcast


def fused(call: Call) -> Tensor:
    """`sdpa`: `torch.nn.functional.scaled_dot_product_attention`.

    A bottom-right causal mask of other than square shape, a window and a mask become one boolean `attn_mask`, a bias a
    floating-point one. The formula of `reference` computes what the kernels cannot express: a soft-cap, dropout from a
    generator of one's own, no key at all, and keys or values that hold NaN or ∞ where something is hidden. A single
    query, as in decoding, goes ways of its own (see `single_query`).
    """
    written_out = by_compiler(call)
    if not written_out and not _expressible(call):
        return dense(call)
    q, k, v = call.q, call.k, call.v
    if kernels_lose_digits(q):
        q, k, v = upcast(q), upcast(k), upcast(v)
    plain, grouped_heads = _plainly_causal(call), call.group > 1
    hides_nothing = call.mask is None and call.bias is None and not call.is_causal
    attn_mask, empty = (None, None) if plain or hides_nothing else _attn_mask(call, q.dtype)
    if written_out:
        o = as_sums(q, k, v, attn_mask, call.scale, call.softcap)
    elif q.shape[2] == 1 and grouped_heads:
        o = grouped(q, k, v, attn_mask, call.scale, call.dropout_p)
    else:
        o = scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=attn_mask,
            is_causal=plain,
            dropout_p=call.dropout_p,
            scale=call.scale,
            enable_gqa=grouped_heads,
        )
    return (o if empty is None else o.masked_fill(empty, 0)).to(call.q.dtype)


attention = backend(fused)


def _plainly_causal(call: Call) -> bool:
    """Tell whether `is_causal` means the same to the kernels. They scale the −∞ they hide with, and 0 makes it NaN."""
    alone = call.mask is None and call.bias is None and call.window is None
    return call.is_causal and alone and call.shift == 0 and call.scale >= torch.finfo(torch.float32).tiny


def _expressible(call: Call) -> bool:
    own_dropout = call.dropout_p > 0 and call.generator is not None
    plain = call.softcap is None and call.k.shape[2] > 0 and not own_dropout
    return plain and (call.trusted or not call.poisoned())


def _attn_mask(call: Call, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """Return what the kernel adds to the scores, and the rows that see nothing.

    Kernels differ in what they make of an empty row, so it is shown everything and set to zero afterwards.
    """
    visible, bias = call.visible(), call.bias
    if bias is None:
        if visible is None or call.trusted:
            return visible, None
        empty = ~visible.any(-1, keepdim=True)
        return visible | empty, empty
    s = bias if visible is None else bias.masked_fill(~visible, -torch.inf)
    if call.trusted:
        return s.to(dtype), None
    empty = (s == -torch.inf).all(-1, keepdim=True)
    return s.masked_fill(empty, 0).to(dtype), empty
