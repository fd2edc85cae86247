"""Drivers of operations whose arguments or results are more than tensors: a mapping of weights, a cache.

Each function takes the implementation and the recorded arguments, and gives tensors. It uses nothing but torch, for its
source goes into the scripts that reproduce a violation.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

from veriformer.verify.scripts import model_drivers as calls
from veriformer.verify.scripts import optimizer_ways, scheduler_ways, training_drivers


def drive_kv_cache(target, batch, num_kv_heads, max_length, head_dim, *, actions=(), rows=(), beside=False, default=None, **options):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """Make a cache and act on it: what the updates showed, taken up just before the next call, and every length.

    beside: another cache of the same sizes does the same with the negative rows. default: PyTorch's default dtype while
    they are made. The rows given are left alone.
    """
    usual = torch.get_default_dtype()
    torch.set_default_dtype(default or usual)
    try:
        cache, other = (target.kv_cache(batch, num_kv_heads, max_length, head_dim, **options) for _ in range(2))
    finally:
        torch.set_default_dtype(usual)
    before = [(x, x.clone()) for x in rows if isinstance(x, torch.Tensor)]
    shown: list[torch.Tensor] = []
    supply, last, lengths = iter(rows), (), [cache.length]
    for action in actions:
        given = [next(supply) for _ in range({"update": 2, "overflow": 2, "reorder": 1, "reset": 0}[action])]
        shown.extend(map(torch.clone, last))
        last = ()
        if action == "overflow":
            try:
                cache.update(*given)
            except Exception:
                pass
            else:
                raise AssertionError(f"more tokens than max_length={max_length} were accepted")
        else:
            last = getattr(cache, action)(*given) or ()
            if beside:
                getattr(other, action)(*(-x if x.is_floating_point() else x for x in given))
        lengths.append(cache.length)
    if not all(torch.equal(*pair) for pair in before):
        raise AssertionError("the cache has changed tensors that it was given")
    return [*shown, *last], lengths


def drive_cached_attention(target, q_new, k_new, v_new, *, max_length, past=(), order=None, forget=False, excess=(), chunks=None, quantization=None, window=None, **options):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """Fill a cache with past keys and values, pair by pair; reorder or reset it; then attend, chunk by chunk."""
    B, G, _, d = k_new.shape
    made = {name: value for name, value in (("quantization", quantization), ("window", window)) if value is not None}
    cache = target.kv_cache(B, G, max_length, d, dtype=k_new.dtype, **made)
    for k, v in zip(past[::2], past[1::2], strict=True):
        cache.update(k, v)
    if order is not None:
        cache.reorder(order)
    if forget:
        cache.reset()
    if excess:
        try:
            target.cached_attention(*excess, cache, **options)
        except Exception:
            pass
        else:
            raise AssertionError(f"more tokens than max_length={max_length} were accepted")
    if chunks is None:
        return target.cached_attention(q_new, k_new, v_new, cache, **options)
    parts = zip(*(x.split(chunks, 2) for x in (q_new, k_new, v_new)), strict=True)
    return torch.cat([target.cached_attention(q, k, v, cache, **options) for q, k, v in parts], 2)


def drive_transformer_block(target, x, **options):  # type: ignore[no-untyped-def]
    """Put the parameters, given one by one, into the mapping that the block takes."""
    settings = {"num_heads", "num_kv_heads", "norm", "activation", "is_causal", "attention_mask", "eps"}
    params = {name: options.pop(name) for name in list(options) if name not in settings}
    given = dict(params)
    result = target.transformer_block(x, params, **options)
    if params.keys() != given.keys() or any(params[name] is not given[name] for name in given):
        raise AssertionError("the block has changed the mapping of its parameters")
    return result


DRIVERS: Mapping[str, Callable[..., Any]] = {
    "kv_cache": drive_kv_cache,
    "cached_attention": drive_cached_attention,
    "transformer_block": drive_transformer_block,
    **training_drivers.DRIVERS,
    "causal_lm": calls.drive_causal_lm,
    "masked_lm": calls.drive_masked_lm,
    "seq2seq_lm": calls.drive_seq2seq_lm,
    "optimizer": optimizer_ways.drive_any_optimizer,
    "lr_scheduler": scheduler_ways.drive_any_scheduler,
}
"""Driver by operation; all other operations are called directly."""


_WHOLE = (calls, optimizer_ways, scheduler_ways)
"""Modules quoted whole, for their functions need one another."""


def source(operation: str) -> str:
    """Return the source of an operation's driver; empty without one."""
    if operation not in DRIVERS:
        return ""
    for module in _WHOLE:
        if DRIVERS[operation].__module__ == module.__name__:
            return inspect.getsource(module).partition("# mypy: ignore-errors\n")[2]
    return re.sub(r"  # (type|fmt|noqa).*", "", inspect.getsource(DRIVERS[operation]))
