"""Terms added to an operation that are no part of it, with a factor given by the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from veriformer.verify.forms.form import NotOffered

SQUARED_NORMALISER = "a multiple of the squared logsumexp of its logits added (a z-loss)"


_LEAST = 1e-6
"""Smaller factors come of rounding: a loss that is right in plain calls and wrong in others is no other loss."""


def with_squared_normaliser(loss: Callable[..., Tensor]) -> dict[str, Callable[..., Tensor]]:
    """Return the mean loss with a multiple of the mean square of log Z, by as much as a loss of one call has of it."""
    logits, target = torch.tensor([[0.5, -1.0, 4.0], [-0.5, 2.0, 1.0]], dtype=torch.float64), torch.tensor([0, 2])

    def squares(x: Tensor) -> Tensor:
        return x.logsumexp(-1).square().mean()

    def added(logits: Tensor, target: Tensor, *, reduction: str = "mean", **options: Any) -> Tensor:
        if reduction != "mean" or target.is_floating_point():
            raise NotOffered("reduction and target: the mean over classes")
        return cross_entropy(logits.flatten(0, -2), target.flatten(), **options) + factor * squares(logits)

    try:
        factor = float((loss(logits, target) - cross_entropy(logits, target)) / squares(logits))
    except Exception:  # refused, for whatever reason
        return {}
    return {SQUARED_NORMALISER: added} if factor > _LEAST else {}
