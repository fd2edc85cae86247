"""Clipping in place: tied parameters once, shards of all processes together, and nothing where a gradient is broken."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from veriformer.impl.optimization.clipping import clip_grad_norm
from veriformer.impl.training.distributed import whole


@torch.no_grad()
def clip_gradients(params: Iterable[Tensor], max_norm: float) -> Tensor:
    """Shorten the gradients of `params` together to `max_norm` (equation 11), and return their norm, 0-d.

    A parameter that appears twice counts once. Of sharded gradients the norm is that of the whole. Where the norm is
    not finite, gradients are left as they are: such a step is to be skipped, and NaN would spread if it scaled them.
    """
    grads: list[Any] = [p.grad for p in {id(p): p for p in params}.values() if p.grad is not None]
    if not any(hasattr(g, "full_tensor") for g in grads):
        clipped, norm = clip_grad_norm(grads, max_norm)
        if bool(norm.isfinite()):
            torch._foreach_copy_(grads, clipped)
        return norm
    norm = whole(torch.nn.utils.get_total_norm(grads))
    if bool(norm.isfinite()) and float(norm) > max_norm:
        torch._foreach_mul_(grads, max_norm / float(norm))
    return norm
