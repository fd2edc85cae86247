"""Attention as it is printed: dense, one line per step."""

import torch
from torch import Tensor

from veriformer.impl.attention_backends.arguments import backend
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.dropout import dropout_scale, keep_mask
from veriformer.impl.attention_backends.masked_matmul import VisibleScores, VisibleSum
from veriformer.impl.derivatives import apply_autograd_function
from veriformer.impl.precision import upcast


def dense(call: Call) -> Tensor:
    """`reference`: every score at once, O(n_q · n_k) memory; the formula, to read and to compare with."""
    q, k, v = (upcast(x) for x in (call.q, call.k, call.v))
    k, v = (x.repeat_interleave(call.group, dim=1) for x in (k, v))  # [B, H, n_k, ·]
    visible, poisoned = _visible(call), call.poisoned()

    s = (
        apply_autograd_function(VisibleScores, q, k, visible) if poisoned else q @ k.mT
    ) * call.scale  # [B, H, n_q, n_k]
    if call.softcap is not None:
        s = call.softcap * (s / call.softcap).tanh()
    if call.bias is not None:
        s = s + call.bias
    p = _softmax(s, visible)
    if call.dropout_p > 0:
        keep = keep_mask(tuple(s.shape), call.dropout_p, call.generator, s.device)
        p = p.masked_fill(~keep, 0) * dropout_scale(call.dropout_p)
    o = apply_autograd_function(VisibleSum, p, v, visible) if poisoned else p @ v  # [B, H, n_q, d_v]
    return o.to(call.q.dtype)


attention = backend(dense)


def _visible(call: Call) -> Tensor | None:
    visible = call.visible()
    return None if visible is None else visible.expand(*call.q.shape[:3], call.k.shape[2])


def _softmax(s: Tensor, visible: Tensor | None) -> Tensor:
    """Return softmax over the visible scores; a row without any is zero, and so is its gradient."""
    if visible is not None:
        s = s.masked_fill(~visible, -torch.inf)
    empty = (s == -torch.inf).all(-1, keepdim=True)
    p = s.masked_fill(empty, 0).softmax(-1)
    hidden = empty if visible is None else empty | ~visible
    return p.masked_fill(hidden, 0)
