"""Small faults of layers, heads, linear attention, caches and the block, one for each law that must see it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.common import known
from veriformer.verify.mutants.combinators import Fault, Operation, change_any_result, change_result, instead, without


class Cache:
    """A right cache, some of whose methods are others."""

    def __init__(self, right: Any, **methods: Callable[..., Any]) -> None:
        self.right = right
        self.methods = methods

    @property
    def __class__(self) -> Any:
        return type(self.right)  # attention over a cache takes no other

    def __getattr__(self, name: str) -> Any:
        if name in self.methods:
            return functools.partial(self.methods[name], self.right)
        return getattr(self.right, name)


def caching(**methods: Callable[..., Any]) -> Fault:
    return instead(lambda op, *args, **options: Cache(op(*args, **options), **methods))


def showing(change: Callable[[Tensor], Tensor]) -> Fault:
    return caching(update=lambda cache, k, v: tuple(change(x) for x in cache.update(k, v)))


def flat(x: Tensor) -> Tensor:
    return x if x.is_contiguous() else x.as_strided(x.shape, torch.empty(x.shape).stride())


def more_room(op: Operation, batch: int, groups: int, max_length: int, *args: Any, **options: Any) -> Any:
    return op(batch, groups, max_length + 3, *args, **options)


def wider_window(op: Operation, *args: Any, window: int | None = None, **options: Any) -> Any:
    return op(*args, window=None if window is None else window + 1, **options)


def coarse(op: Operation, *args: Any, quantization: str | None = None, **options: Any) -> Any:
    cache = op(*args, **options)
    rounded = Cache(cache, update=lambda right, k, v: right.update(k.round(), v.round()))
    return rounded if quantization else cache


def first_element(cache: Any, index: Tensor) -> None:
    cache.reorder(torch.zeros_like(index))


def by_head(op: Operation, x: Tensor, w_q: Tensor, *args: Any, num_heads: int, **options: Any) -> Tensor:
    width = w_q.shape[1] // num_heads
    size = 1 + 0.2 * torch.arange(num_heads).repeat_interleave(width).to(w_q.dtype)
    return op(x, w_q * size, *args, num_heads=num_heads, **options)


def positioned(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(x * (1 + 0.1 * torch.arange(x.shape[1]).to(x.dtype)[:, None]), *args, **options)


def louder_context(op: Operation, *args: Any, context: Tensor | None = None, **options: Any) -> Tensor:
    return op(*args, context=None if context is None else 1.5 * context, **options)


def leaks(op: Operation, x: Tensor, *args: Any, is_causal: bool = False, **options: Any) -> Tensor:
    result = op(x, *args, is_causal=is_causal, **options)
    return result + 0.05 * x.mean() if is_causal else result


def touches_padding(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(x, *args, **options) + 0 * x.sum()


def bools_only(op: Operation, *args: Any, attention_mask: Tensor | None = None, **options: Any) -> Tensor:
    usual = attention_mask is not None and attention_mask.dtype == torch.bool
    return op(*args, attention_mask=attention_mask if usual else None, **options)


def mean_when_blind(op: Operation, *args: Any, **options: Any) -> Tensor:
    result = op(*args, **options)
    return torch.where((result == 0).all(-1, keepdim=True), torch.ones_like(result), result)


def values_in_half(op: Operation, x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, *args: Any, **o: Any) -> Tensor:
    return op(x, w_q, w_k, w_v, *args, **o) + (0 * (x.half() @ w_v.half()).sum()).to(x.dtype)


def keys_by_place(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return op(q, k * (1 + 0.3 * torch.arange(k.shape[2]).to(k.dtype)[:, None]), v, **options)


def curved(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return op(q, k, v + 0.1 * v * v, **options)


def by_length(op: Operation, q: Tensor, k: Tensor, v: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(q, k, v, *args, **options) * (1 + 0.1 * k.shape[2])


def second_chunk_lost(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    n = torch.arange(k.shape[2])[:, None]
    return op(q, k, torch.where((n >= 32) & (n < 64), 0.5 * v, v), **options)


def sees_new_values(op: Operation, q: Tensor, k: Tensor, v: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(q, k, v, *args, **options) + 0.05 * v.mean()


def leaks_values(op: Operation, q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False, **options: Any) -> Tensor:
    result = op(q, k, v, is_causal=is_causal, **options)
    return result + 0.05 * v.mean() if is_causal else result


def mixes_tokens(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(x, *args, **options) + 0.05 * x.mean(1, keepdim=True)


def hidden_in_half(op: Operation, x: Tensor, params: dict[str, Tensor], **options: Any) -> Tensor:
    h = params["norm2_bias"].half() @ params["w1"].half()
    return op(x, params, **options) + (0 * h.sum()).to(x.dtype)


def features_in_half(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """The sum of all features over the keys is rounded to half precision."""
    sums = (k.double().clamp(min=-1) + 1).sum(2, keepdim=True)
    products = (q.double() * sums).sum(-1, keepdim=True)
    y: Tensor = op(q, k, v, **options)
    return y + 0 * products.half().to(y.dtype)


def fewer_dropped(op: Operation, x: Tensor, p: float, **options: Any) -> Tensor:
    return op(x, p / 2, **options) * (1 - p / 2) / max(1 - p, 2.0**-10)


def uniform(op: Operation, n_in: int, n_out: int, *, generator: torch.Generator | None = None) -> Tensor:
    edge = (6 / (n_in + n_out)) ** 0.5
    return torch.empty(n_in, n_out).uniform_(-edge, edge, generator=generator)


def experts_in_half(op: Operation, x: Tensor, router: Tensor, w1: Tensor, *rest: Tensor, **options: Any) -> Tensor:
    y: Tensor = op(x, router, w1, *rest, **options)
    hidden = (x.double()[..., None, None, :] @ w1.double()).half().amax((-1, -2, -3))
    return y + 0 * hidden[..., None].to(y.dtype)


def first_base(op: Operation) -> Operation:
    """Tables are kept by length alone."""
    known: dict[int, Any] = {}

    def broken(x: Tensor, positions: Tensor, *, base: float = 10000.0, **options: Any) -> Tensor:
        y: Tensor = op(x, positions, base=known.setdefault(x.shape[-2], base), **options)
        return y

    return broken


SPECIFIC: dict[str, Fault] = {
    "mixture_of_experts.range": instead(experts_in_half),
    "rope.history": first_base,
    "dropout.rate": instead(fewer_dropped),
    "dropout.independence": known("DO-08", "dropout"),
    "dropout.generator": without("generator"),
    "xavier_normal.contract": change_result(lambda x: x[None]),
    "xavier_normal.normality": instead(uniform),
    "xavier_normal.generator": without("generator"),
    "multi_head_attention.sum_of_heads": change_any_result(lambda x: x + 0.0625),
    "multi_head_attention.heads_permuted": instead(by_head),
    "multi_head_attention.grouped_is_copied": known("GQA-01", "multi_head_attention"),
    "multi_head_attention.tokens_permuted": instead(positioned),
    "multi_head_attention.own_context": instead(louder_context),
    "multi_head_attention.causality": instead(leaks),
    "multi_head_attention.padding": without("attention_mask"),
    "multi_head_attention.padding_poison": instead(touches_padding),
    "multi_head_attention.mask_forms": instead(bools_only),
    "multi_head_attention.no_key": instead(mean_when_blind),
    "multi_head_attention.range": instead(values_in_half),
    "linear_attention.prefix": instead(leaks_values),
    "linear_attention.causality": instead(leaks_values),
    "linear_attention.keys_permuted": instead(keys_by_place),
    "linear_attention.linear_in_values": instead(curved),
    "linear_attention.duplicated_keys": instead(by_length),
    "linear_attention.empty_row": instead(mean_when_blind),
    "linear_attention.chunks": instead(second_chunk_lost),
    "linear_attention.range": instead(features_in_half),
    "kv_cache.history": caching(reset=lambda cache: None),
    "kv_cache.overflow": instead(more_room),
    "kv_cache.window": instead(wider_window),
    "kv_cache.reorder": caching(reorder=first_element),
    "kv_cache.long": showing(lambda x: torch.cat((x[:, :, :64], x[:, :, 64:].flip(2)), 2)),
    "kv_cache.int8": instead(coarse),
    "cached_attention.chunks": instead(by_length),
    "cached_attention.reorder": caching(reorder=lambda cache, index: None),
    "cached_attention.forgotten": caching(reset=lambda cache: None),
    "cached_attention.overflow": instead(more_room),
    "cached_attention.causality": instead(sees_new_values),
    "cached_attention.int8": instead(coarse),
    "transformer_block.one_branch": instead(mixes_tokens),
    "transformer_block.tokens_permuted": instead(positioned),
    "transformer_block.causality": instead(leaks),
    "transformer_block.padding": without("attention_mask"),
    "transformer_block.range": instead(hidden_in_half),
}

ON_CACHES = {
    "cached_attention.reorder": "kv_cache",
    "cached_attention.forgotten": "kv_cache",
    "cached_attention.overflow": "kv_cache",
    "cached_attention.int8": "kv_cache",
}
"""Laws of attention over a cache that a fault of the cache breaks."""
