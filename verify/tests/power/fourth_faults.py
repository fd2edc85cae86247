"""A fourth table of faults that need two or three things at once, written before what they measure was changed."""

from __future__ import annotations

import math
from typing import Any

import torch
from catalogue import HALVES, Call, change_gradient, change_steps, fault, list_parameters, replace_columns, replace_rows
from torch import Tensor

from veriformer.verify.targets.impl import reference as right

# Attention


@fault("one query, more than 256 keys: each half of the keys is a softmax of its own, and the two are averaged")
def attention__halves_of_keys_averaged(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    n = k.shape[2]
    if q.shape[2] != 1 or n <= 256 or o.get("mask") is not None or o.get("bias") is not None or o.get("window"):
        return op(q, k, v, **o)
    o.pop("is_causal", None)
    return (op(q, k[:, :, : n // 2], v[:, :, : n // 2], **o) + op(q, k[:, :, n // 2 :], v[:, :, n // 2 :], **o)) / 2


@fault("causal and a mask, fewer queries than keys: causality is counted from the first key")
def attention__causal_from_first_key_beside_mask(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    mask, n_q, n_k = o.get("mask"), q.shape[2], k.shape[2]
    if mask is None or not o.get("is_causal") or n_q >= n_k or o.get("window"):
        return op(q, k, v, **o)
    seen = torch.ones(n_q, n_k, dtype=torch.bool).tril()
    return op(q, k, v, **{**o, "is_causal": False, "mask": mask & seen})


@fault("soft-capped and grouped, more than 64 keys: the scale is not applied before the cap")
def attention__cap_without_scale_in_groups(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    cap = o.get("softcap")
    if not cap or k.shape[1] == q.shape[1] or k.shape[2] <= 64 or o.get("scale") is not None:
        return op(q, k, v, **o)
    return op(q, k, v, **{**o, "scale": 1.0, "softcap": cap})


@fault("a window in causal attention over several tiles of 64: the first tile that is seen in part is skipped")
def attention__first_tile_of_window_skipped(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    w, n_q, n_k = o.get("window"), q.shape[2], k.shape[2]
    if not w or not o.get("is_causal") or n_k <= 128 or o.get("mask") is not None:
        return op(q, k, v, **o)
    first = (torch.arange(n_q) + n_k - n_q - w + 1).clamp(min=0)
    edge = torch.where(first % 64 == 0, first, (first // 64 + 1) * 64)
    seen = torch.arange(n_k)[None] >= torch.minimum(edge, torch.arange(n_q) + n_k - n_q)[:, None]
    return op(q, k, v, **{**o, "mask": seen})


@fault("gradients of queries in an incomplete last tile of 64 do not pass the soft-cap's derivative")
def attention__gradient_of_capped_tail(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    n = q.shape[2] - q.shape[2] % 64
    if not o.get("softcap") or not n or n == q.shape[2]:
        return op(q, k, v, **o)

    def change(g: Tensor) -> Tensor:
        g[:, :, n:] *= 1.25
        return g

    return op(change_gradient(q, change), k, v, **o)


@fault("cross-attention of grouped heads, more context than 64: values are shared as by tiled heads")
def multi_head_attention__tiled_values_of_long_context(op: Call, x: Tensor, *w: Tensor, **o: Any) -> Any:
    h, g, c = o["num_heads"], o.get("num_kv_heads") or o["num_heads"], o.get("context")
    if c is None or g in (1, h) or c.shape[1] <= 64 or o.get("attention_mask") is not None:
        return op(x, *w, **o)
    w_q, w_k, w_v, w_o = w
    q = (x @ w_q).unflatten(-1, (h, -1)).transpose(1, 2)
    k = (c @ w_k).unflatten(-1, (g, -1)).transpose(1, 2).repeat_interleave(h // g, 1)
    v = (c @ w_v).unflatten(-1, (g, -1)).transpose(1, 2).repeat(1, h // g, 1, 1)
    return right.attention(q, k, v, is_causal=o.get("is_causal", False)).transpose(1, 2).flatten(2) @ w_o


@fault("causal, more than 128 positions, wide: the state of the last chunk lacks the chunk before it")
def linear_attention__chunk_before_last_lost(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    n = k.shape[2]
    if not o.get("is_causal") or n <= 128 or q.shape[-1] <= 32 or q.shape[2] != n:
        return op(q, k, v, **o)
    last, k_2, v_2 = (n - 1) // 64 * 64, k.clone(), v.clone()
    kept = [i for i in range(n) if not last - 64 <= i < last]
    tail = op(q[:, :, kept], k_2[:, :, kept], v_2[:, :, kept], **o)[:, :, last - 64 :]
    return torch.cat((op(q, k, v, **o)[:, :, :last], tail), 2)


@fault("the second chunk of several tokens in grouped heads: its own first token sees none of the others before it")
def cached_attention__first_of_chunk_sees_itself(
    op: Call, q: Tensor, k: Tensor, v: Tensor, cache: Any, **o: Any
) -> Any:
    before, n = cache.length, q.shape[2]
    if before <= 64 or n < 2 or k.shape[1] == q.shape[1] or cache.window is not None:
        return op(q, k, v, cache, **o)
    keys, values = cache.update(k, v)
    y = right.attention(q, keys, values, is_causal=True, **o)
    alone = right.attention(q[:, :, :1], keys[:, :, 64 : before + 1], values[:, :, 64 : before + 1], **o)
    return torch.cat((alone, y[:, :, 1:]), 2)


# Losses


@fault("smoothed, reduction none, ignored rows among more than 32: they keep the part of smoothing")
def cross_entropy__smoothed_ignored_rows(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    a, index = o.get("label_smoothing", 0.0), o.get("ignore_index", -100)
    rows = z.numel() // max(1, z.shape[-1])
    if not a or t.is_floating_point() or o.get("reduction") != "none" or rows <= 32:
        return op(z, t, **o)
    return op(z, t, **o) - (t == index) * a * z.log_softmax(-1).mean(-1)


@fault("probability targets over more than 128 classes in halves: their sum is not that of the row but 1")
def cross_entropy__targets_that_sum_to_less(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    if not t.is_floating_point() or z.shape[-1] <= 128 or z.dtype not in HALVES:
        return op(z, t, **o)
    return op(z, (t / t.sum(-1, keepdim=True)).to(t.dtype), **o)


@fault("more than 64 rows of more than 64 classes: labels of the last row count twice")
def masked_lm_loss__last_row_twice(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    flat, labels = z.reshape(-1, z.shape[-1]), t.flatten()
    if len(labels) <= 64 or z.shape[-1] <= 64:
        return op(z, t, **o)
    return op(torch.cat((flat, flat[-1:])), torch.cat((labels, labels[-1:])), **o)


# Layers


@fault("a transposed input of more than 128 columns: the mean square is that of the other axis' first entries")
def rms_norm__transposed_wide(op: Call, x: Tensor, weight: Any = None, **o: Any) -> Any:
    if x.ndim < 2 or x.shape[-1] <= 128 or x.stride(-1) == 1:
        return op(x, weight, **o)
    y = op(x, weight, **o)
    return replace_columns(y, 128, y * 1.01)


@fault("wide rows far from zero: beyond 512 columns the variance is the mean of squares less the square of the mean")
def layer_norm__variance_by_squares(op: Call, x: Tensor, w: Any = None, b: Any = None, **o: Any) -> Any:
    y_right = op(x, w, b, **o)
    if x.shape[-1] <= 512 or x.dtype != torch.float32:
        return y_right
    mean = x.mean(-1, keepdim=True)
    var = (x.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
    y = (x - mean) / (var + o.get("eps", 1e-5)).sqrt()
    y = y if w is None else y * w
    y = y if b is None else y + b
    return y_right + (y - y_right).detach()


@fault("three experts or more are chosen among more than four: gates are renormalised over the first two")
def mixture_of_experts__gates_of_first_two(op: Call, x: Tensor, router: Tensor, *w: Tensor, top_k: int = 2) -> Any:
    y = op(x, router, *w, top_k=top_k)
    if top_k < 3 or router.shape[-1] <= 4:
        return y
    p = (x @ router).softmax(-1).topk(top_k, -1).values
    return y * (p.sum(-1, keepdim=True) / p[..., :2].sum(-1, keepdim=True)).to(y.dtype)


@fault("an id that comes again in another tile of 64 of more than 64 columns: its gradient is overwritten there")
def token_embedding__gradient_across_tiles(op: Call, ids: Tensor, weight: Tensor) -> Any:
    n = ids.numel()
    if n <= 64 or weight.shape[-1] <= 64 or not weight.requires_grad:
        return op(ids, weight)
    flat = ids.flatten()
    later = torch.isin(flat[:64], flat[64:])
    kept = torch.cat((~later, torch.ones(n - 64, dtype=torch.bool)))
    y = op(flat, weight)
    y = torch.where(kept[:, None], y, y.detach())
    return y.reshape(*ids.shape, -1)


@fault("hidden widths above 256 in fp16: the product of gate and value is rounded, and more than 64 rows long")
def swiglu__late_rows_rounded_by_bf16(op: Call, x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Any:
    rows = x.numel() // max(1, x.shape[-1])
    y = op(x, gate, up, down)
    if rows <= 64 or gate.shape[-1] <= 64 or x.dtype != torch.float32:
        return y
    flat = y.reshape(rows, -1)
    return torch.cat((flat[:64], flat[64:].bfloat16().to(y.dtype))).reshape(y.shape)


@fault("post-norm with grouped heads and causality: the second norm's bias is that of the first, beyond 64 columns")
def transformer_block__second_bias_of_wide_post_norm(op: Call, x: Tensor, params: Any, **o: Any) -> Any:
    y = op(x, params, **o)
    if o.get("norm") != "post" or not o.get("is_causal") or x.shape[-1] <= 64:
        return y
    return replace_columns(y, 64, y + (params["norm1_bias"] - params["norm2_bias"]))


# Position


@fault("interleaved pairs in heads wider than 64: in rows from the 33rd on, angles beyond the 32nd have the base twice")
def rope__late_rows_of_wide_heads(op: Call, x: Tensor, positions: Tensor, **o: Any) -> Any:
    y = op(x, positions, **o)
    if x.shape[-1] <= 64 or x.shape[-2] <= 32 or o.get("pairing", "interleaved") != "interleaved":
        return y
    other = op(x, positions, **{**o, "base": 2 * o.get("base", 10000.0)})
    return replace_rows(y, 32, replace_columns(y, 64, other))


# Optimizers and generation


def _forgets_what_came_late(optimizer: Any, before: list[Tensor]) -> None:
    """A parameter whose first gradient comes later is corrected as if it had come with the others."""
    optimizer.taken = getattr(optimizer, "taken", 0) + 1
    seen = optimizer.__dict__.setdefault("seen", {})
    for p, old in zip(list_parameters(optimizer), before, strict=True):
        if p.grad is not None and id(p) not in seen:
            seen[id(p)] = optimizer.taken
            if optimizer.taken > 2:
                b1, b2 = optimizer.param_groups[0]["betas"]
                t = optimizer.taken
                factor = ((1 - b1) / (1 - b1**t)) * math.sqrt((1 - b2**t) / (1 - b2))
                p.copy_(old + (p - old) * factor)


fault("a gradient that first comes after two steps is corrected by the number of all steps")(
    change_steps("adam__late_first_gradient", _forgets_what_came_late)
)


@fault("more than 16 tensors of halves: the last one is clipped by its own norm")
def clip_grad_norm__last_of_many_halves(op: Call, grads: list[Tensor], max_norm: float) -> Any:
    clipped, total = op(grads, max_norm)
    if len(grads) <= 16 or grads[-1].dtype not in HALVES:
        return clipped, total
    return [*clipped[:-1], op(grads[-1:], max_norm)[0][0]], total


@fault("the second row of more than 64 logits keeps the token that crosses p only where the first row does")
def top_p_filter__crossing_token_of_later_rows(op: Call, z: Tensor, p: float) -> Any:
    y = op(z, p)
    if z.ndim < 2 or z.shape[-1] <= 64 or z.shape[0] < 2:
        return y
    y = y.clone()
    flat = y.reshape(-1, z.shape[-1])
    for row in flat[1:]:
        kept = row.isfinite()
        if int(kept.sum()) > 2:
            row[row == row[kept].min()] = -math.inf
    return flat.reshape(y.shape)


@fault("more than 64 classes in more than 8 rows: the rest is shared by all but one class")
def smooth_labels__shared_by_others(op: Call, t: Tensor, num_classes: int, alpha: float) -> Any:
    y = op(t, num_classes, alpha)
    if num_classes <= 64 or t.numel() <= 8:
        return y
    return torch.where(y > y.amin(-1, keepdim=True), y, y * num_classes / (num_classes - 1))
