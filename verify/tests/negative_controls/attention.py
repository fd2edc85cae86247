"""Small faults of masks and attention, one for each law that must see it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.common import GOOD, known, more, shifted
from veriformer.verify.mutants.combinators import (
    Fault,
    Operation,
    by_name,
    change_result,
    gradient_of,
    instead,
    without,
)


@functools.cache
def remembered(n_q: int, n_k: int, window: int | None = None) -> Tensor:
    return GOOD.causal_mask(n_q, n_k, window=window)


def flipped_last(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.flip(-1)


def later_tiles_lost(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    n = torch.arange(k.shape[2])[:, None]
    return {"v": torch.where((n >= 64) & (n < 128), 0.5 * v, v)}


def rest_lost(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    n = torch.arange(k.shape[2])[:, None]
    return {"v": torch.where(n >= 256, 0.5 * v, v)} if q.shape[2] > 256 else {}


def late_bias(*, k: Tensor, bias: Tensor | None = None, **_: Any) -> dict[str, Any]:
    """The third tile of keys gets the bias of the second."""
    if bias is None or bias.shape[-1] < 96:
        return {}
    return {"bias": torch.cat((bias[..., :64], bias[..., 32:64], bias[..., 96:]), -1)}


def rounded_positions(*, q: Tensor, k: Tensor, window: int | None = None, **o: Any) -> dict[str, Any]:
    n_q, n_k = q.shape[2], k.shape[2]
    i, j = (torch.arange(n).bfloat16() for n in (n_q, n_k))
    i = (i + (n_k - n_q))[:, None]
    seen = (j <= i) & (j > i - (window or n_k + 1))
    return {"is_causal": False, "window": None, "mask": seen} if o.get("is_causal") else {}


def leaks_last(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    result = op(q, k, v, **options)
    return result + 0.01 * v.mean() if options.get("is_causal") else result


def uniform_when_empty(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    result = op(q, k, v, **options)
    return torch.where((result == 0).all(-1, keepdim=True), v.mean(), result) if k.shape[2] else result


def touches_hidden(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return op(q, k, v, **options) + 0 * v.sum() + 0 * k.sum()


def scores_in_half(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    s = q[:, :1].half() @ k[:, :1].half().mT
    return op(q, k, v, **options) + (0 * s.sum()).to(q.dtype)


def not_low_enough(op: Operation, q: Tensor, k: Tensor, v: Tensor, *, mask: Any = None, **options: Any) -> Tensor:
    if mask is None:
        return op(q, k, v, **options)
    return op(q, k, v, bias=torch.where(mask, 0.0, -1e4).to(q.dtype), **options)


def by_key_place(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return op(q, k * (1 + 0.05 * torch.arange(k.shape[2], dtype=k.dtype)[:, None]), v, **options)


def squared_keys(*, k: Tensor, **_: Any) -> dict[str, Any]:
    return {"k": k + 0.05 * k * k}


def dropping(change: Callable[..., dict[str, Any]]) -> Fault:
    """Attention whose options are changed where it drops."""
    return by_name(lambda **a: change(**a) if a.get("training") and a.get("dropout_p") else {})


def rescaled_kept(op: Operation, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Tensor:
    p = o.get("dropout_p", 0.0) if o.get("training") else 0.0
    return op(q, k, v, **o) * (1 - p)


def fresh_in_backward(op: Operation, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Tensor:
    """The value of one mask, the gradient of another."""
    if not o.get("training") or not o.get("dropout_p"):
        return op(q, k, v, **o)
    with torch.no_grad():
        value = op(q, k, v, **o)
    other = op(q, k, v, **{**o, "generator": torch.Generator().manual_seed(0)})
    return other + (value - other).detach()


def few_heads(op: Operation, *args: Any, **options: Any) -> Tensor:
    """Write no entries beyond index 255, as an index of one byte does."""
    y: Tensor = op(*args, **options)
    written = torch.zeros_like(y)
    written[:256, :256] = 1
    return y * written


SPECIFIC: dict[str, Fault] = {
    "causal_mask.window": known("KV-01", "causal_mask"),
    "causal_mask.nested": change_result(lambda x: x.flip(0)),
    "causal_mask.fresh": lambda op: remembered,
    "causal_mask.alignment": known("MASK-01", "causal_mask"),
    "attention.scale": without("scale"),
    "attention.softcap": without("softcap"),
    "attention.grouped_heads": known("GQA-01", "attention"),
    "attention.mask": without("mask"),
    "attention.padding": without("mask"),
    "attention.packing": without("mask"),
    "attention.bias": by_name(lambda bias=None, **_: {"bias": flipped_last(bias)}),
    "attention.bias_dtype": by_name(lambda bias=None, **_: {"bias": None if bias is None else bias.half().round()}),
    "attention.window": by_name(lambda window=None, **_: {"window": None if window is None else window + 1}),
    "attention.alignment": known("MASK-01", "attention"),
    "attention.long": by_name(later_tiles_lost),
    "attention.partial_tiles": by_name(rest_lost),
    "attention.key_tiles": by_name(late_bias),
    "attention.long_windows": by_name(later_tiles_lost),
    "attention.far_positions": by_name(rounded_positions),
    "attention.decoding": by_name(lambda v, **_: {"v": torch.cat((v[:, :, :60], 0 * v[:, :, 60:]), 2)}),
    "attention.many_heads": instead(few_heads),
    "attention.low_scores": instead(not_low_enough),
    "attention.causality": instead(leaks_last),
    "attention.causal_is_mask": instead(leaks_last),
    "attention.mask_is_bias": without("mask"),
    "attention.mask_broadcast": known("MASK-17", "attention"),
    "attention.grouped_is_copied": known("GQA-01", "attention"),
    "attention.permutation": instead(by_key_place),
    "attention.key_shift": by_name(squared_keys),
    "attention.conservation": gradient_of(1, shifted),
    "attention.scale_balance": gradient_of(0, more),
    "attention.linear_in_values": by_name(lambda v, **_: {"v": v + 0.05 * v * v}),
    "attention.empty_row": instead(uniform_when_empty),
    "attention.no_query": change_result(lambda x: x[..., :0] if x.numel() == 0 else x),
    "attention.hidden_poison": instead(touches_hidden),
    "attention.hidden_scores": instead(not_low_enough),
    "attention.range": instead(scores_in_half),
    "attention.dropout_off": by_name(lambda dropout_p=0.0, **_: {"training": True}),
    "attention.dropout_scale": instead(rescaled_kept),
    "attention.dropout_generator": without("generator"),
    "attention.dropout_rate": dropping(lambda dropout_p, **_: {"dropout_p": 1.0 - dropout_p}),
    "attention.dropout_independence": known("DO-08", "attention"),
    "attention.dropout_gradient": instead(fresh_in_backward),
    "attention.dropout_long": instead(fresh_in_backward),
}
