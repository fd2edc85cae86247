"""Layers that act on each position alone, by stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.mutants.staged_reference.scores import widen

Unary = Callable[[Tensor], Tensor]

ACTIVATIONS: Mapping[str, Unary] = {
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": F.gelu,
}
"""The activations by name."""


def kept(shape: torch.Size, p: float, generator: torch.Generator | None) -> Tensor:
    """True where an entry survives dropout."""
    return torch.rand(shape, generator=generator) >= p


def drop(h: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Survivors over 1 − p, zeros in between."""
    return torch.where(kept(h.shape, p, generator), h, 0) / (1 - p) if p < 1 else torch.zeros_like(h) * h


@dataclass(frozen=True)
class Network:
    """σ(x W₁ + b₁) W₂ + b₂; ``widen`` chooses the dtype that hidden values are held in."""

    activations: Mapping[str, Unary] = field(default_factory=lambda: ACTIVATIONS)
    widen: Unary = widen

    def __call__(
        self,
        x: Tensor,
        w1: Tensor,
        b1: Tensor,
        w2: Tensor,
        b2: Tensor,
        activation: str,
        dropout_p: float = 0.0,
        training: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the network's output."""
        wide, w1, b1, w2, b2 = (self.widen(t) for t in (x, w1, b1, w2, b2))
        h = self.activations[activation](wide @ w1 + b1)
        h = drop(h, dropout_p, generator) if training and dropout_p else h
        return (h @ w2 + b2).to(x.dtype)


def gated(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """(SiLU(x W_gate) ⊙ x W_up) W_down."""
    wide, w_gate, w_up, w_down = (widen(t) for t in (x, w_gate, w_up, w_down))
    return (F.silu(wide @ w_gate) * (wide @ w_up) @ w_down).to(x.dtype)
