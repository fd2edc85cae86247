"""Drivers of optimizers, schedules and gradient accumulation, which are among ``drivers.DRIVERS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch


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
    **dict.fromkeys(("gradient_descent", "sgd_momentum", "adam", "adamw"), drive_optimizer),
    **dict.fromkeys(("warmup", "warmup_cosine", "noam"), drive_schedule),
    "accumulate_gradients": drive_accumulate_gradients,
}
"""Driver by operation."""
