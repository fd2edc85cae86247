"""Layers that act on each position alone, by stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.mutants.staged_reference.scores import widen

Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Tensor, Tensor], Tensor]

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


def chosen(scores: Tensor, k: int) -> Tensor:
    """True for the k highest of each row, ties to the lower index."""
    order = scores.argsort(dim=-1, descending=True, stable=True)[..., :k]
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order, True)


def gates(scores: Tensor, see: Tensor) -> Tensor:
    """Return the softmax of the chosen scores alone."""
    return scores.masked_fill(~see, -torch.inf).softmax(-1)


@dataclass(frozen=True)
class Mixture:
    """Σ_e p_e E_e(x): every expert answers, and the gates of those not chosen are zero."""

    chosen: Callable[[Tensor, int], Tensor] = chosen
    gates: Binary = gates

    def __call__(self, x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, top_k: int) -> Tensor:
        """Return the mixture's output."""
        rows, router, w1, b1, w2, b2 = (widen(t) for t in (x.reshape(-1, x.shape[-1]), router, w1, b1, w2, b2))
        scores = rows @ router
        p = self.gates(scores, self.chosen(scores, top_k))  # [N, E]
        answers = F.gelu(rows @ w1 + b1[:, None]) @ w2 + b2[:, None]  # [E, N, o]
        y = (p.mT[..., None] * answers).sum(0)
        return y.to(x.dtype).reshape(*x.shape[:-1], y.shape[-1])
