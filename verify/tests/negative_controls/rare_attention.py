"""Rare faults of attention, its heads and its caches: by name the requirement that must see each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.heads import Cache, caching
from veriformer.verify.mutants.combinators import Fault, Operation, instead


def causality_into_mask(op: Operation, q: Tensor, k: Tensor, v: Tensor, *, mask: Any = None, **o: Any) -> Tensor:
    n_q, n_k = q.shape[2], k.shape[2]
    y: Tensor = op(q, k, v, mask=mask, **o)
    if mask is not None and o.get("is_causal") and mask.shape == (*q.shape[:3], n_k):
        mask &= torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return y


def causality_into_bias(op: Operation, q: Tensor, k: Tensor, v: Tensor, *, bias: Any = None, **o: Any) -> Tensor:
    n_q, n_k = q.shape[2], k.shape[2]
    y: Tensor = op(q, k, v, bias=bias, **o)
    if bias is not None and o.get("is_causal") and bias.shape == (*q.shape[:3], n_k) and not bias.requires_grad:
        bias.masked_fill_(torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + 1), -torch.inf)
    return y


def first_tells(op: Operation, *args: Any, mask: Tensor | None = None, **options: Any) -> Tensor:
    padded = mask is not None and (mask.ndim < 4 or not mask[0].all())
    y: Tensor = op(*args, mask=mask if padded else None, **options)
    return y


def first_row_tells(op: Operation, *args: Any, attention_mask: Tensor | None = None, **options: Any) -> Tensor:
    padded = attention_mask is not None and not attention_mask[0].all()
    y: Tensor = op(*args, attention_mask=attention_mask if padded else None, **options)
    return y


def skips_low_tiles(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """Tiles of 32 keys whose best scores lie 8 below the best of all before."""
    if k.shape[2] < 65 or k.shape[1] != 1 or any(value is not None for value in options.values()):
        return op(q, k, v, **options)
    tiles = [s.amax() for s in (q @ k.mT * q.shape[-1] ** -0.5).detach().split(32, -1)]
    low = [i > 0 and bool(s < max(tiles[:i]) - 8) for i, s in enumerate(tiles)]
    return op(q, k, v, mask=~torch.tensor(low).repeat_interleave(32)[None, : k.shape[2]])


def with_epsilon(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """An epsilon of 1e-12 in the normaliser."""
    phi_q, phi_k = (x.clamp(max=0).exp() + x.clamp(min=0) for x in (q, k))
    weights = phi_q @ phi_k.mT
    weights = weights.tril(k.shape[2] - q.shape[2]) if options.get("is_causal") else weights
    sums = weights.sum(-1, keepdim=True)
    y: Tensor = op(q, k, v, **options)
    return torch.where(sums == 0, y, y * sums / (sums + 1e-12))


def whole_while_new(op: Operation, *args: Any, quantization: str | None = None, **options: Any) -> Any:
    """Rows of bytes that the update which brings them returns as they came."""

    def update(right: Any, k: Tensor, v: Tensor) -> Any:
        shown = right.update(k, v)
        return tuple(torch.cat((x[:, :, : -new.shape[2]], new), 2) for x, new in zip(shown, (k, v), strict=True))

    cache = op(*args, quantization=quantization, **options)
    return Cache(cache, update=update) if quantization else cache


def no_finer_step(op: Operation, *args: Any, quantization: str | None = None, **options: Any) -> Any:
    """Steps of at least 1e-5 / 127."""

    def coarsened(x: Tensor) -> Tensor:
        return torch.where(x.abs().amax(-1, keepdim=True) < 1e-5, (x * 127e5).round() / 127e5, x)

    cache = op(*args, quantization=quantization, **options)
    return Cache(cache, update=lambda right, k, v: right.update(*map(coarsened, (k, v)))) if quantization else cache


def inverse_order(cache: Any, index: Tensor) -> None:
    permutes = bool((index.sort().values == torch.arange(len(index))).all())
    cache.reorder(index.argsort() if permutes else index)


RARE: dict[str, tuple[str, Fault]] = {
    "causality written into a whole mask": ("attention.mask", instead(causality_into_mask)),
    "causality written into a whole bias": ("attention.bias", instead(causality_into_bias)),
    "no mask where the first element has none": ("attention.padding", instead(first_tells)),
    "no padding where the first text has none": ("multi_head_attention.padding", instead(first_row_tells)),
    "tiles skipped that score 8 less": ("attention.key_tiles", instead(skips_low_tiles)),
    "an epsilon that small features show": ("linear_attention.convexity", instead(with_epsilon)),
    "bytes only from the second update on": ("kv_cache.int8", instead(whole_while_new)),
    "steps no finer than those of rows of 1e-5": ("kv_cache.int8", instead(no_finer_step)),
    "an order taken for its inverse": ("kv_cache.reorder", caching(reorder=inverse_order)),
}
