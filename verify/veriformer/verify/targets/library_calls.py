"""Adapters that libraries share: a network with the weights of a call, filters of rows, T5's buckets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.targets.seeding import seed_from


def with_weights(module: nn.Module, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """Return what a module gives with these weights in place of its own."""
    out: Tensor = torch.func.functional_call(module, weights, (x,))
    return out


def network(module: nn.Module, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Return what a network gives whose first and last linear layers have these weights, as the contract has them:
    x [..., d], w1 [d, h], w2 [h, d']."""
    first, last = [name.removesuffix(".weight") for name, p in module.named_parameters() if p.ndim == 2]
    weights = {f"{first}.weight": w1.T, f"{first}.bias": b1, f"{last}.weight": w2.T, f"{last}.bias": b2}
    return with_weights(module, weights, x)


def feed_forward(build: Callable[[str, float], nn.Module]) -> Callable[..., Tensor]:
    """Return the operation by a library's network, which ``build`` makes of an activation and a rate of dropout.

    Without the options of dropout it is the contract's ``mlp``.
    """

    def call(
        x: Tensor,
        *weights: Tensor,
        activation: str,
        dropout_p: float = 0.0,
        training: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        module = build(activation, float(dropout_p)).train(training)  # which draws weights
        with seed_from(generator if training else None):
            return network(module, x, *weights)

    return call


def by_rows(choose: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    """Return what a filter, which takes logits [batch, V], makes of logits [..., V]."""
    return choose(logits.reshape(-1, logits.shape[-1])).reshape(logits.shape)


def t5_buckets(function: Callable[..., Tensor], says: Callable[[bool], bool] = bool) -> Callable[..., Tensor]:
    """Return the operation by a library's function, which takes int64; says: what it is told of both directions."""

    def call(relative_position: Tensor, *, bidirectional: bool, **sizes: Any) -> Tensor:
        return function(relative_position.long(), says(bidirectional), sizes["num_buckets"], sizes["max_distance"])

    return call
