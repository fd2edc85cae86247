"""Schedules as they are printed, and accumulation with the backward pass of each micro-batch for itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Gradients = list[Tensor]


def warmup(step: int, *, max_lr: float, warmup_steps: int) -> float:
    """Equation 10."""
    return max_lr * (min(step / warmup_steps, 1.0) if warmup_steps else 1.0)


def warmup_cosine(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    """A line, half a cosine, 0."""
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return max_lr * step / warmup_steps
    return max_lr * 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / (total_steps - warmup_steps)))


def noam(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Return the smaller of two powers."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def _as_it_is(grads: Gradients, count: int) -> Gradients:
    return grads


def _by_tokens(sums: Gradients, counts: list[int]) -> Gradients:
    return [total / max(1, sum(counts)) for total in sums]


@dataclass(frozen=True)
class Accumulation:
    """part: what one micro-batch, of so many tokens, adds. mean: what is made of the sums in the end."""

    part: Callable[[Gradients, int], Gradients] = _as_it_is
    mean: Callable[[Gradients, list[int]], Gradients] = _by_tokens

    def __call__(self, loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
        """Take one backward pass per micro-batch."""
        sums = [torch.zeros_like(p).double() for p in params]
        counts: list[int] = []
        for batch in micro_batches:
            loss, count = loss_fn(batch)
            counts.append(int(count))
            grads = torch.autograd.grad(loss, params, allow_unused=True, materialize_grads=True)
            sums = [total + g for total, g in zip(sums, self.part(list(grads), counts[-1]), strict=True)]
        return [g.to(p.dtype) for g, p in zip(self.mean(sums, counts), params, strict=True)]
