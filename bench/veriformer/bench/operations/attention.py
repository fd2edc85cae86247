"""Calls of attention and of caches: G key heads, R query heads to each, t tokens cached, room for m."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from veriformer.bench.operations.family import Call, Costs, Family, Operation, Sizes, random
from veriformer.spec import costs
from veriformer.spec.efficient.linear_recurrence import linear_flops, state_bytes

_BATCH = 2


def grouped(cost: Callable[[], Any], **sizes: Any) -> Callable[[], Any]:
    """In the letters of the calls below: H = G R heads of one width d."""
    r, g, d = (costs.symbol(x) for x in "RGd")
    known = {"B": _BATCH, "H": g * r, "d_k": d, "d_v": d, **sizes}
    letters = {costs.symbol(name): value for name, value in known.items()}
    return lambda: cost().subs(letters, simultaneous=True)


def _attention(operation: Operation, s: Sizes) -> Call:
    tensors = _qkv(s, s["n_q"], s["n_k"])
    return Call(lambda: operation(*tensors), tensors)


def _ungrouped(operation: Operation, s: Sizes) -> Call:
    tensors = _qkv({**s, "G": s["H"], "R": 1}, s["n_q"], s["n_k"])
    return Call(lambda: operation(*tensors), tensors)


def _qkv(s: Sizes, n_q: int, n_k: int) -> list[torch.Tensor]:
    g, d = s["G"], s["d"]
    return [random(_BATCH, g * s["R"], n_q, d), random(_BATCH, g, n_k, d), random(_BATCH, g, n_k, d)]


def _linear(operation: Operation, s: Sizes) -> Call:
    q, k, v = (random(_BATCH, s["H"], s["n"], s["d"]) for _ in range(3))
    return Call(lambda: operation(q, k, v), [q, k, v])


def _linear_causal(operation: Operation, s: Sizes) -> Call:
    q, k, v = (random(_BATCH, 2, s["n"], s["d"]) for _ in range(3))
    return Call(lambda: operation(q, k, v, is_causal=True), [q, k, v])


def _mask(operation: Operation, s: Sizes) -> Call:
    return Call(lambda: operation(s["n_q"], s["n_k"]), gradients=False)


def _filled(make: Operation, s: Sizes, length: int) -> Any:
    cache = make(_BATCH, s["G"], s["m"], s["d"])
    cache.update(*_new(s, length))
    return cache


def _new(s: Sizes, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    return random(_BATCH, s["G"], length, s["d"]), random(_BATCH, s["G"], length, s["d"])


def _append(operation: Operation, s: Sizes) -> Call:
    """One token more, after t: a first one, which may make room, is not counted."""
    cache, new = _filled(operation, s, s["t"]), _new(s, 1)
    cache.update(*_new(s, 1))
    return Call(lambda: cache.update(*new), new, gradients=False)


def _held(operation: Operation, s: Sizes) -> Call:
    """A cache that is full."""
    new = _new(s, s["m"])

    def run() -> object:
        cache = operation(_BATCH, s["G"], s["m"], s["d"])
        cache.update(*new)
        return cache

    return Call(run, new, gradients=False)


def _cached(attend: Operation, make: Operation, s: Sizes) -> Call:
    """Attention of one new token over the target's own cache of t."""
    cache = _filled(make, s, s["t"])
    tensors = [random(_BATCH, s["G"] * s["R"], 1, s["d"]), *_new(s, 1)]
    return Call(lambda: attend(*tensors, cache), tensors, gradients=False)


def _append_bytes() -> Any:
    """A key and a value are read and written: 2 · 2 B G d."""
    return costs.kv_cache_bytes().subs(costs.symbol("n_k"), 1) * 2


def _linear_total() -> Any:
    return 3 * linear_flops()


def _mask_bytes() -> Any:
    return costs.symbol("n_q") * costs.symbol("n_k")


def _square(cost: Callable[[], Any], heads: int | None = None) -> Callable[[], Any]:
    """All lengths n, a key head for each head; H of them where their number is not given."""
    n, heads = costs.symbol("n"), heads or costs.symbol("H")
    return grouped(cost, H=heads, G=heads, n_q=n, n_k=n)


def _features() -> Any:
    """Of queries and keys, and what the sums of keys normalise."""
    return linear_flops() + state_bytes()


_H = costs.symbol
FAMILIES = (
    Family(
        "attention",
        "G R n_q n_k d",
        _attention,
        Costs(
            flops=grouped(costs.attention_flops),
            total=grouped(lambda: costs.attention_flops() + costs.attention_backward_flops()),
            moved=grouped(costs.attention_bytes),
            others=grouped(costs.attention_other),
            extra=grouped(costs.reference_attention_peak),
            total_in_blocks=grouped(lambda: costs.attention_flops() + costs.tiled_backward_flops()),
            moved_as_printed=lambda: grouped(costs.attention_bytes, G=_H("G") * _H("R"))(),
        ),
        case="grouped heads",
    ),
    Family(
        "attention",
        "H n_q n_k d",
        _ungrouped,
        Costs(
            flops=grouped(costs.attention_flops, H=_H("H")),
            total=grouped(lambda: costs.attention_flops() + costs.attention_backward_flops(), H=_H("H")),
            moved=grouped(costs.attention_bytes, H=_H("H"), G=_H("H")),
            others=grouped(costs.attention_other, H=_H("H")),
            extra=grouped(costs.reference_attention_peak, H=_H("H")),
            total_in_blocks=grouped(lambda: costs.attention_flops() + costs.tiled_backward_flops(), H=_H("H")),
            moved_as_printed=grouped(costs.attention_bytes, H=_H("H"), G=_H("H")),
        ),
        case="a key head for each head",
    ),
    Family(
        "linear_attention",
        "H n d",
        _linear,
        Costs(
            flops=_square(linear_flops),
            total=_square(_linear_total),
            moved=_square(costs.attention_bytes),
            others=_square(_features),
            extra=_square(state_bytes),
        ),
    ),
    Family(
        "linear_attention",
        "n d",
        _linear_causal,
        Costs(
            moved=_square(costs.attention_bytes, 2),
            others=_square(_features, 2),
            extra=_square(state_bytes, 2),
        ),
        case="causal",
    ),
    Family("causal_mask", "n_q n_k", _mask, Costs(flops=lambda: 0 * _H("w"), moved=_mask_bytes)),
    Family(
        "kv_cache", "G t m d", _append, Costs(flops=lambda: 0 * _H("w"), moved=grouped(_append_bytes)), case="append"
    ),
    Family(
        "cached_attention",
        "G R t m d",
        _cached,
        Costs(
            flops=grouped(costs.attention_flops, n_q=1, n_k=_H("t") + 1),
            moved=grouped(costs.attention_bytes, n_q=1, n_k=_H("t") + 1),
            others=grouped(costs.attention_other, n_q=1, n_k=_H("t") + 1),
        ),
        case="one new token",
        beside=("kv_cache",),
    ),
    Family("kv_cache", "G m d", _held, Costs(kept=grouped(costs.kv_cache_bytes, n_k=_H("m"))), case="full"),
)
