"""Clipping by the global norm."""

import torch


def clip_grad_norm(grads, max_norm):
    grads = list(grads)
    if not grads:
        return [], torch.tensor(0.0)
    if len({g.dtype for g in grads}) > 1:
        raise TypeError("grads: one dtype only")
    top = max(g.abs().max() for g in grads if g.numel()) if any(g.numel() for g in grads) else grads[0].sum()
    if top == 0:
        return [g.clone() for g in grads], torch.zeros((), dtype=grads[0].dtype)
    total = top * torch.sqrt(sum(((g / top) ** 2).sum() for g in grads))
    if total <= max_norm:
        return [g.clone() for g in grads], total
    return [g / top * (max_norm / (total / top)) for g in grads], total
