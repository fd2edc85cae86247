"""Faults of caches and of attention over them."""

from __future__ import annotations

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, replaced_by
from veriformer.verify.mutants.staged_reference.attention import Attention, Full, causal
from veriformer.verify.mutants.staged_reference.caches import Cached, Concatenating
from veriformer.verify.mutants.staged_reference.scores import widen
from veriformer.verify.targets.argument_validation import AttentionOptions


def _scale_of_one(x: Tensor) -> Tensor:
    return widen(x).round().clamp(-127, 127).to(x.dtype)


def _over_padding(x: Tensor) -> Tensor:
    """The largest entry of a row is looked for in a buffer as wide as the next power of two, whose rest is stale."""
    wide = widen(x)
    width = 1 << max(0, x.shape[-1] - 1).bit_length()
    stale = (3 * wide.abs().max()).expand(*x.shape[:-1], width - x.shape[-1])
    step = torch.cat([wide.abs(), stale], -1).amax(-1, keepdim=True) / 127
    return ((wide / torch.where(step == 0, 1, step)).round() * step).to(x.dtype)


def _top_left(o: AttentionOptions, full: Full) -> Tensor:
    n_q, n_k = full[2:]
    return torch.ones(n_q, n_k, dtype=torch.bool).tril() & causal(n_q, n_k, o.window).any(-1, keepdim=True)


def _rows_of_the_chunk(o: AttentionOptions, full: Full) -> Tensor:
    """The window counts from the rows of the chunk, not from their positions: too many keys are left."""
    n_q, n_k = full[2:]
    seen = causal(n_q, n_k)
    return seen if o.window is None else seen & torch.ones(n_q, n_k, dtype=torch.bool).triu(1 - o.window)


BLOCK = 4


def _to_the_end_of_the_block(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Decoding sees all slots of the last block, filled or not; the first row stands for what is left in them."""
    more = (-k.shape[2]) % BLOCK if q.shape[2] == 1 and o.window is None else 0
    k, v = (torch.cat([x, x[:, :, :1].expand(-1, -1, more, -1)], 2) for x in (k, v))
    return Attention()(q, k, v, AttentionOptions(is_causal=True, window=o.window, scale=o.scale, softcap=o.softcap))


_CACHE = Concatenating()

FAULTS: dict[str, dict[str, Fault]] = {
    "KVQ-02": {"kv_cache": replaced_by(Concatenating(stored=_scale_of_one))},
    "KVQ-05": {"kv_cache": replaced_by(Concatenating(stored=_over_padding))},
    "MASK-01": {
        "kv_cache": replaced_by(_CACHE),
        "cached_attention": replaced_by(Cached(attend=Attention(visible=_top_left))),
    },
    "KV-04": {
        "kv_cache": replaced_by(_CACHE),
        "cached_attention": replaced_by(Cached(attend=Attention(visible=_rows_of_the_chunk))),
    },
    "KV-06": {
        "kv_cache": replaced_by(_CACHE),
        "cached_attention": replaced_by(Cached(attend=_to_the_end_of_the_block)),
    },
}
