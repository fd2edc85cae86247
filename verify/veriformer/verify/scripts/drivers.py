"""Drivers of operations whose arguments or results are more than tensors: a mapping of weights, a cache, an optimizer.

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
from veriformer.verify.scripts import optimizer_ways, scheduler_ways


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


def drive_optimizer(target, params, lr, *, optimizer, grads=(), missing=(), zeroed=(), resumed=(), rewound=(), lazily=False, **options):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """Train: every parameter after each step, and each of its gradients after each step, [steps, *shape] each.

    grads: of every parameter all its gradients. missing: pairs (step, parameter) without one. Lists of steps: after
    which gradients are zeroed; before which a new optimizer goes on from a saved state; before which the same one
    steps astray and is set back to a saved state. lazily: the parameters come from an iterator.
    """
    from copy import deepcopy

    make = getattr(target, optimizer)
    if not grads:
        return make(params, lr, **options)
    params = [p.detach().requires_grad_() for p in params]
    trainer = make(iter(params) if lazily else params, lr, **options)
    values, kept = [[] for _ in params], [[] for _ in params]  # type: ignore[var-annotated]
    views = [p.detach() for p in params]  # a model has them too: parameters change in place
    for t in range(len(grads[0])):
        if t in resumed:
            saved = deepcopy(trainer.state_dict())
            params = [p.detach().clone().requires_grad_() for p in params]
            views = [p.detach() for p in params]
            trainer = make(params, 0.5)
            trainer.load_state_dict(saved)
        if t in rewound:
            saved, before = deepcopy(trainer.state_dict()), [p.detach().clone() for p in params]
            for p in params:
                p.grad = torch.ones_like(p)
            trainer.step()
            for p, value in zip(params, before, strict=True):
                p.detach().copy_(value)
            trainer.load_state_dict(saved)
        for i, p in enumerate(params):
            g = None if (t, i) in missing else grads[i][t]
            if g is None or p.grad is None or t % 2 == 0:
                p.grad = None if g is None else g.clone()
            else:  # in place, as after zero_grad(set_to_none=False): an optimizer must not keep it
                p.grad.copy_(g)
        trainer.step()
        for i, p in enumerate(params):
            values[i].append(views[i].to(p.dtype, copy=True))
            kept[i].append(torch.zeros_like(p) if p.grad is None else p.grad.detach().clone())
        if t in zeroed:
            trainer.zero_grad()
            left = [i for i, p in enumerate(params) if p.grad is not None]
            if left:
                raise AssertionError(f"zero_grad() left a gradient to the parameters {left}")
    return [torch.stack(steps) for steps in values], [torch.stack(steps) for steps in kept]


def drive_schedule(target, step, *, schedule, **options):  # type: ignore[no-untyped-def]
    """Ask a schedule for the rates of several steps."""
    found = [getattr(target, schedule)(t, **options) for t in step]
    if not all(isinstance(rate, float) for rate in found):
        raise AssertionError(f"expected floats, got {found}")
    return torch.tensor(found, dtype=torch.float64)


def drive_accumulate_gradients(target, params, micro_batches, *, loss_fn=len, counted="int", masks=None, lazily=False):  # type: ignore[no-untyped-def]  # fmt: skip
    """Take the gradients of Σ (x · w + b − y)² per token, and each ``grad`` afterwards, which was 7 before.

    params: w [d], b, and others that have no part in it. micro_batches: rows [x, y], [tokens, d + 1] each. masks: of
    each micro-batch which tokens count, [tokens] bool. counted: whether the count comes as an int, or the dtype of its
    tensor, the same one for the same number. lazily: micro-batches come from a generator.
    """
    if loss_fn is not len or params is None or micro_batches is None:
        leaves = params and [p.detach().requires_grad_() for p in params]
        return target.accumulate_gradients(loss_fn, leaves, micro_batches)
    w, b, *_ = params = [p.detach().requires_grad_() for p in params]
    for p in params:
        p.grad = torch.full_like(p, 7.0)
    stored = {}  # type: ignore[var-annotated]

    def squares(batch):  # type: ignore[no-untyped-def]
        rows, mask = (batch, batch.new_ones(len(batch))) if masks is None else batch
        error = (rows[:, :-1] @ w + b - rows[:, -1]) * mask
        n = int(mask.sum())
        count = n if counted == "int" else stored.setdefault(n, torch.tensor(n, dtype=getattr(torch, counted)))
        return (error * error).sum(), count

    batches = micro_batches if masks is None else list(zip(micro_batches, masks, strict=True))
    found = target.accumulate_gradients(squares, params, (batch for batch in batches) if lazily else batches)
    return list(found), [p.grad for p in params]


DRIVERS: Mapping[str, Callable[..., Any]] = {
    "kv_cache": drive_kv_cache,
    "cached_attention": drive_cached_attention,
    "transformer_block": drive_transformer_block,
    **dict.fromkeys(("gradient_descent", "sgd_momentum", "adam", "adamw"), drive_optimizer),
    **dict.fromkeys(("warmup", "warmup_cosine", "noam"), drive_schedule),
    "accumulate_gradients": drive_accumulate_gradients,
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
