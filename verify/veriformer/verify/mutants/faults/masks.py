"""Faults of causality, windows and masks: who sees whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from veriformer.impl.attention_backends.arguments import check_arguments
from veriformer.verify.mutants.combinators import Fault, by_name, replaced_by
from veriformer.verify.mutants.staged_reference.attention import (
    Attention,
    Full,
    Problem,
    cap,
    causal,
    dot,
    drop,
    visible,
    weighted,
)
from veriformer.verify.targets.argument_validation import AttentionOptions

Causal = Callable[[int, int, int | None], Tensor]


See = Callable[[AttentionOptions, Full], Tensor]


def _seeing(see: See) -> dict[str, Fault]:
    """Attention that takes from its options, with mask and bias of rank 4, another idea of who sees whom."""

    def change(*, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> dict[str, Any]:
        seen = see(check_arguments(q, k, v, **options), (*q.shape[:3], k.shape[2]))
        return {"mask": seen, "is_causal": False, "window": None}

    return {"attention": by_name(change)}


def _both(rule: Causal) -> dict[str, Fault]:
    """A rule of causality in the mask and in attention."""

    def see(o: AttentionOptions, full: Full) -> Tensor:
        if not o.is_causal:
            return visible(o, full)
        seen = rule(full[2], full[3], o.window)
        return seen if o.mask is None else seen & o.mask

    return {"causal_mask": replaced_by(rule), **_seeing(see)}


def _top_left(n_q: int, n_k: int, window: int | None) -> Tensor:
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (j <= i) if window is None else (j <= i) & (j > i - window)


def _one_too_many(n_q: int, n_k: int, window: int | None) -> Tensor:
    return causal(n_q, n_k, None if window is None else window + 1)


def _window_from_local_row(n_q: int, n_k: int, window: int | None) -> Tensor:
    seen = causal(n_q, n_k)
    return seen if window is None else seen & (torch.arange(n_k) > torch.arange(n_q)[:, None] - window)


def _without_mask(o: AttentionOptions, full: Full) -> Tensor:
    return causal(*full[2:], o.window) if o.is_causal else torch.ones(full[2:], dtype=torch.bool)


def _transposed_padding(o: AttentionOptions, full: Full) -> Tensor:
    if o.mask is None or o.mask.shape[2] != 1 or full[2] != full[3]:
        return visible(o, full)
    return _without_mask(o, full) & o.mask.mT


def _dropped_across(o: AttentionOptions, full: Full) -> Tensor:
    return visible(o, full) if full[2] == full[3] else _without_mask(o, full)


def _causal_only(o: AttentionOptions, full: Full) -> Tensor:
    return _without_mask(o, full) if o.is_causal else visible(o, full)


def _shared_by_heads(mask: Tensor | None) -> bool:
    return mask is not None and mask.shape[1] == 1


def _heads_outside(o: AttentionOptions, full: Full) -> Tensor:
    """Mask rows come batch first, while the heads are stacked outside the batch."""
    if o.mask is None or not _shared_by_heads(o.mask):
        return visible(o, full)
    B, H = full[:2]
    rows = o.mask.expand(B, H, *o.mask.shape[2:])
    return _without_mask(o, full) & rows.reshape(H, B, *o.mask.shape[2:]).transpose(0, 1)


def _unbroadcast_offset(o: AttentionOptions, full: Full) -> Tensor:
    """The mask of one head is read at the offset that it would have if every head had one."""
    if o.mask is None or not _shared_by_heads(o.mask):
        return visible(o, full)
    B, H, n_q, n_k = full
    flat = o.mask.expand(o.mask.shape[0], 1, n_q, n_k).reshape(-1)
    offsets = torch.arange(B * H * n_q * n_k).reshape(full)
    return _without_mask(o, full) & flat[offsets % max(1, flat.numel())]


_BLOCK = 4


def _stale_tail(o: AttentionOptions, full: Full) -> Tensor:
    """Keys up to the end of the block that holds the last real one are read."""
    if o.mask is None or full[3] == 0:
        return visible(o, full)
    j = torch.arange(full[3])
    last = torch.where(o.mask, j, -1).amax(-1, keepdim=True)
    end = (last + _BLOCK) // _BLOCK * _BLOCK
    return _without_mask(o, full) & (o.mask | ((j > last) & (j < end)))


def _two_planes(t: Problem) -> Tensor:
    """Add causality and the mask as two planes of the lowest finite number, in the inputs' dtype."""
    lowest = torch.finfo(t.dtype).min
    mask = torch.ones_like(t.see) if t.options.mask is None else t.options.mask
    order = visible(replace(t.options, mask=None), (*t.q.shape[:3], t.k.shape[2]))
    planes = [torch.zeros(t.see.shape, dtype=t.dtype).masked_fill(~seen, lowest) for seen in (mask, order)]
    s = cap(dot(t.q, t.k, t.see) * t.scale, t.options.softcap) + (planes[0] + planes[1])
    s = s if t.bias is None else s + t.bias.masked_fill(~t.see & mask & order, lowest)
    p = torch.softmax(s, -1) * t.see
    if t.options.training and t.options.dropout_p:
        p = drop(p, t.options)
    return weighted(p, t.v, t.see)


FAULTS: dict[str, dict[str, Fault]] = {
    "MASK-01": _both(_top_left),
    "KV-01": _both(_one_too_many),
    "KV-04": _both(_window_from_local_row),
    "MASK-05": {"attention": replaced_by(Attention(core=_two_planes))},
    "MASK-07": _seeing(_transposed_padding),
    "MASK-08": _seeing(_dropped_across),
    "MASK-13": _seeing(_causal_only),
    "MASK-17": _seeing(_unbroadcast_offset),
    "ATT-06": _seeing(_heads_outside),
    "KV-06": _seeing(_stale_tail),
}
