"""PyTorch's multi-head attention and encoder layer.

They have one width for keys and values, heads that share nothing, and square projections. Everything else is put
together from ``linear`` and ``scaled_dot_product_attention``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": F.gelu,
}


def _multi_head_attention(
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
    num_heads = int(num_heads)
    groups = num_heads if num_kv_heads is None else int(num_kv_heads)
    c = x if context is None else context
    real = None if attention_mask is None else attention_mask.bool()
    order = torch.ones(x.shape[1], c.shape[1], dtype=torch.bool).tril(c.shape[1] - x.shape[1]) if is_causal else None
    if _is_pytorchs(x, w_q, w_v, w_o, num_heads, groups) and _every_query_sees(real, order, x.shape[1]):
        hidden = None if order is None else ~order
        return _pytorchs(x, c, (w_q, w_k, w_v, w_o), num_heads, None if real is None else ~real, hidden)
    q, k, v = (
        F.linear(y, w.T).reshape(*y.shape[:2], h, w.shape[1] // h).transpose(1, 2)
        for y, w, h in ((x, w_q, num_heads), (c, w_k, groups), (c, w_v, groups))
    )
    see = None if real is None else real[:, None, None, :]
    see = order if see is None else see if order is None else see & order
    o = F.scaled_dot_product_attention(q, k, v, see, enable_gqa=groups != num_heads)
    return F.linear(o.transpose(1, 2).flatten(2), w_o.T)


def _is_pytorchs(x: Tensor, w_q: Tensor, w_v: Tensor, w_o: Tensor, heads: int, groups: int) -> bool:
    d = x.shape[2]
    return groups == heads and w_q.shape[1] == d and w_v.shape[1] == d and w_o.shape == (d, d)


def _every_query_sees(real: Tensor | None, order: Tensor | None, n_q: int) -> bool:
    """Return whether every query sees a key: PyTorch's multi-head attention gives NaN otherwise
    (pytorch/pytorch#41508).
    """
    if real is None:
        return order is None or bool(order.any(-1).all())
    see = real[:, None, :].expand(-1, n_q, -1)
    return bool((see if order is None else see & order).any(-1).all())


def _pytorchs(
    x: Tensor, c: Tensor, weights: tuple[Tensor, ...], heads: int, padding: Tensor | None, hidden: Tensor | None
) -> Tensor:
    """Call PyTorch's multi-head attention, which takes the batch second and multiplies by transposed weights."""
    w_q, w_k, w_v, w_o = (w.T for w in weights)
    d, bias = x.shape[2], torch.zeros(3 * x.shape[2], dtype=x.dtype)
    query, key = x.transpose(0, 1), c.transpose(0, 1)
    out, _ = F.multi_head_attention_forward(
        query, key, key, d, heads, None, bias, None, None, False, 0.0, w_o, None,
        key_padding_mask=padding, need_weights=False, attn_mask=hidden,
        use_separate_proj_weight=True, q_proj_weight=w_q, k_proj_weight=w_k, v_proj_weight=w_v,
    )  # fmt: skip
    return out.transpose(0, 1)


def _transformer_block(
    x: Tensor, params: Mapping[str, Tensor], *, norm: str, activation: str, eps: float, **options: Any
) -> Tensor:
    p, heads = dict(params), int(options["num_heads"])
    groups = heads if options["num_kv_heads"] is None else int(options["num_kv_heads"])
    mask = options["attention_mask"]
    fits = _is_pytorchs(x, p["w_q"], p["w_v"], p["w_o"], heads, groups) and p["w_k"].shape[1] == x.shape[2]
    order = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril() if options["is_causal"] else None
    if fits and _every_query_sees(None if mask is None else mask.bool(), order, x.shape[1]):
        return _encoder_layer(x, p, heads, norm == "pre", activation, float(eps), mask, order)

    def normed(h: Tensor, place: str) -> Tensor:
        return F.layer_norm(h, h.shape[-1:], p[f"{place}_weight"], p[f"{place}_bias"], float(eps))

    def attend(h: Tensor) -> Tensor:
        return _multi_head_attention(h, p["w_q"], p["w_k"], p["w_v"], p["w_o"], context=None, **options)

    def transform(h: Tensor) -> Tensor:
        return F.linear(_ACTIVATIONS[activation](F.linear(h, p["w1"].T, p["b1"])), p["w2"].T, p["b2"])

    if norm == "pre":
        h = x + attend(normed(x, "norm1"))
        return h + transform(normed(h, "norm2"))
    h = normed(x + attend(x), "norm1")
    return normed(h + transform(h), "norm2")


def _encoder_layer(
    x: Tensor,
    p: Mapping[str, Tensor],
    heads: int,
    norm_first: bool,
    activation: str,
    eps: float,
    mask: Tensor | None,
    order: Tensor | None,
) -> Tensor:
    d, f = p["w1"].shape
    layer = torch.nn.TransformerEncoderLayer(
        d, heads, f, 0.0, _ACTIVATIONS[activation], eps, True, norm_first, device="meta", dtype=x.dtype
    )
    zero = torch.zeros(d, dtype=x.dtype)
    weights = {
        "self_attn.in_proj_weight": torch.cat([p["w_q"].T, p["w_k"].T, p["w_v"].T]),
        "self_attn.in_proj_bias": torch.zeros(3 * d, dtype=x.dtype),
        "self_attn.out_proj.weight": p["w_o"].T,
        "self_attn.out_proj.bias": zero,
        "linear1.weight": p["w1"].T,
        "linear1.bias": p["b1"],
        "linear2.weight": p["w2"].T,
        "linear2.bias": p["b2"],
        **{f"{place}.{what}": p[f"{place}_{what}"] for place in ("norm1", "norm2") for what in ("weight", "bias")},
    }
    call: dict[str, Any] = {
        "src_mask": None if order is None else ~order,
        "src_key_padding_mask": None if mask is None else ~mask.bool(),
    }
    out: Tensor = torch.func.functional_call(layer, weights, (x,), call)
    return out


RAW_OPS: dict[str, Any] = {
    "multi_head_attention": _multi_head_attention,
    "transformer_block": _transformer_block,
}
"""By the contract's names. PyTorch has no linear attention and no cache."""
