"""The attention of x-transformers as operations: Attend, written out or through PyTorch's kernel, and its module.

Its query head h reads key head h mod G, the contract's h // (H // G): heads are put into its order and back.
"""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.targets.argument_validation import AttentionOptions
from veriformer.verify.targets.seeding import seeded

_attend: Any = import_module("x_transformers.attend")
_library: Any = import_module("x_transformers.x_transformers")

_WRITTEN_OUT = {name: ["fp32", "bf16", "fp16"] for name in ("attention", "multi_head_attention")}  # its softmax is fp32
NOT_PROVIDED = {
    "causal_mask": "its windows are made within its module",
    "linear_attention": "it has none",
    "kv_cache": "what it keeps are keys and values that its models return",
    "cached_attention": "what it keeps are keys and values that its models return",
    "transformer_block": "its layers come in stacks, and its norms have no biases",
}


def _in_turn(x: Tensor, heads: int, groups: int, axis: int) -> Tensor:
    """Heads that share keys, one group after another, as heads whose groups take turns; and back with H // G."""
    shape = *x.shape[:axis], groups, heads // groups, x.shape[axis] // heads, *x.shape[axis + 1 :]
    return x.reshape(shape).transpose(axis, axis + 1).reshape(x.shape)


def _attention(flash: bool, q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Call Attend. It caps the scores after adding the bias, and its kernel caps nothing.

    Where that matters the capped scores are given as queries, and the identity as keys.
    """
    H, G, n_k = q.shape[1], k.shape[1], k.shape[2]
    bias = None if o.bias is None else o.bias.to(q.dtype).expand(-1, H, -1, n_k)
    scale, softcap, q = o.scale, o.softcap, _in_turn(q, H, G, 1)
    see, bias = (None if x is None else _in_turn(x, H, G, 1) if x.shape[1] == H else x for x in (_seen(q, k, o), bias))
    if softcap is not None and (flash or bias is not None):
        q, k, scale, softcap = (
            _capped(q, k, scale, softcap),
            torch.eye(n_k, dtype=q.dtype).expand(*k.shape[:3], n_k),
            1.0,
            None,
        )
    attend = _attend.Attend(
        causal=o.is_causal,
        scale=scale,
        dropout=float(o.dropout_p),
        flash=flash,
        softclamp_logits=softcap is not None,
        **({} if softcap is None else {"logit_softclamp_value": float(softcap)}),
    ).train(o.training)
    with seeded(o.generator if o.training and o.dropout_p else None):
        out: Tensor = attend(q, k, v, mask=see, attn_bias=bias)[0]
    return _in_turn(out, H, H // G, 1)


def _seen(q: Tensor, k: Tensor, o: AttentionOptions) -> Tensor | None:
    """The mask [B, H, n_q, n_k], or 1 for B or H, with the window in it, as its module makes it."""
    see = None if o.mask is None else o.mask.expand(-1, -1, q.shape[2], k.shape[2])
    if o.window is None:
        return see
    n_q, n_k = q.shape[2], k.shape[2]
    distance = torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)
    near = (distance < o.window).expand(1, 1, n_q, n_k)
    return near if see is None else see & near


def _capped(q: Tensor, k: Tensor, scale: float | None, softcap: float) -> Tensor:
    scores = (
        q @ k.repeat(1, q.shape[1] // k.shape[1], 1, 1).mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    )
    capped: Tensor = _attend.softclamp(scores, float(softcap))
    return capped


def _multi_head_attention(
    flash: bool,
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    *,
    num_heads: int,
    num_kv_heads: int | None,
    context: Tensor | None,
    attention_mask: Tensor | None,
    is_causal: bool,
) -> Tensor:
    """Call the library's module, which multiplies by transposed weights."""
    H = int(num_heads)
    G = H if num_kv_heads is None else int(num_kv_heads)
    module = _library.Attention(
        x.shape[-1],
        dim_head=w_q.shape[1] // H,
        dim_context=w_k.shape[0],
        value_dim_head=w_v.shape[1] // G,
        dim_out=w_o.shape[1],
        heads=H,
        kv_heads=G,
        causal=is_causal,
        flash=flash,
        project_out=True,
    )
    weights = {
        "to_q.weight": _in_turn(w_q, H, G, 1).T,
        "to_k.weight": w_k.T,
        "to_v.weight": w_v.T,
        "to_out.weight": _in_turn(w_o, H, G, 0).T,
    }
    real = None if attention_mask is None else attention_mask.bool()
    given = {"mask": real} if context is None else {"context": context, "context_mask": real}
    out: Tensor = torch.func.functional_call(module, weights, (x,), given)
    return out


def raw_ops(flash: bool) -> dict[str, Any]:
    """By the contract's names: written out, or through PyTorch's kernel."""
    return {
        "attention": partial(_attention, flash),
        "multi_head_attention": partial(_multi_head_attention, flash),
    }


def dtypes(flash: bool) -> dict[str, list[str]]:
    """Return the promised dtypes where they are not all: a softmax that is written out is fp32."""
    return {} if flash else _WRITTEN_OUT
