"""Gradients over micro-batches, as if over all tokens at once."""

import torch


def accumulate_gradients(loss_fn, params, micro_batches):
    params = list(params)
    total = [torch.zeros_like(p) for p in params]
    count = 0
    for batch in micro_batches:
        loss, n = loss_fn(batch)
        count = count + int(n)
        if not loss.requires_grad:
            continue
        grads = torch.autograd.grad(loss, params, allow_unused=True)
        total = [t if g is None else t + g for t, g in zip(total, grads)]
    return [t / max(count, 1) for t in total]
