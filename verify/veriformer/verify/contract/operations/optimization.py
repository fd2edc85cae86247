"""Optimization: steps, learning rates and what is done to gradients."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor

from veriformer.verify.contract.objects import Optimizer


def gradient_descent(params: Iterable[Tensor], lr: float) -> Optimizer:
    """Gradient descent: θ − lr · g (3)."""


def sgd_momentum(params: Iterable[Tensor], lr: float, *, beta: float = 0.9) -> Optimizer:
    """SGD with momentum: steps along v = β v + (1 − β) g, which starts at 0 (5, 6)."""


def adam(
    params: Iterable[Tensor],
    lr: float,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Adam; weight decay is L2, added to the gradient (7, 8, 9)."""


def adamw(
    params: Iterable[Tensor],
    lr: float,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> Optimizer:
    """AdamW: Adam with decoupled weight decay (9)."""


def warmup(step: int, *, max_lr: float, warmup_steps: int) -> float:
    """Learning rate of a linear warmup; steps count from 0 (10)."""


def warmup_cosine(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    """Learning rate of a linear warmup, then half a cosine to 0, where it stays; steps count from 0."""


def noam(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Learning rate of the original Transformer; steps count from 1."""


def clip_grad_norm(grads: Sequence[Tensor], max_norm: float) -> tuple[Sequence[Tensor], Tensor]:
    """Clipping by global norm: the gradients scaled to norm max_norm at most, and their norm before (11)."""


def accumulate_gradients(
    loss_fn: Callable[[Any], tuple[Tensor, int]], params: Sequence[Tensor], micro_batches: Iterable[Any]
) -> Sequence[Tensor]:
    """Gradients of the mean loss over all tokens of all micro-batches; loss_fn gives a sum and a count."""
