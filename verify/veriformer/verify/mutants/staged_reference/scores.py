"""Stages that computations of scores share: the format, the maximum that is subtracted, the reduction of losses."""

from __future__ import annotations

import torch
from torch import Tensor


def widen(x: Tensor) -> Tensor:
    """Halves in fp32, everything else as it is."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def maximum(z: Tensor, dim: int = -1) -> Tensor:
    """Return the largest entry along dim, kept as an axis, 0 where there is no finite one; a constant to autograd."""
    m = z.detach().amax(dim, keepdim=True)
    return m.masked_fill(m.isinf(), 0)


def reduced(loss: Tensor, counted: Tensor, reduction: str) -> Tensor:
    """Losses as they are, their sum, or their mean over those that count, 0 without any."""
    if reduction == "none":
        return loss
    return loss.sum() / counted.sum().clamp(min=1) if reduction == "mean" else loss.sum()
