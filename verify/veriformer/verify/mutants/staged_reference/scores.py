"""Softmax, log-sum-exp and the losses, by stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Unary = Callable[[Tensor], Tensor]


def widen(x: Tensor) -> Tensor:
    """Halves in fp32, everything else as it is."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def maximum(z: Tensor, dim: int = -1) -> Tensor:
    """Return the largest entry along dim, kept as an axis, 0 where there is no finite one; a constant to autograd."""
    m = z.detach().amax(dim, keepdim=True)
    return m.masked_fill(m.isinf(), 0)


@dataclass(frozen=True)
class Softmax:
    """p = e^{z − m} / Σ e^{z − m}; ``reference`` gives the m that is subtracted."""

    reference: Callable[[Tensor, int], Tensor] = maximum

    def __call__(self, z: Tensor, dim: int) -> Tensor:
        """Probabilities along dim."""
        x = widen(z)
        e = (x - self.reference(x, dim)).exp()
        return (e / e.sum(dim, keepdim=True)).to(z.dtype)


@dataclass(frozen=True)
class LogSumExp:
    """m + log Σ e^{z − m}."""

    reference: Callable[[Tensor, int], Tensor] = maximum

    def __call__(self, z: Tensor, dim: int) -> Tensor:
        """Return the logarithm of the sum of exponentials along dim."""
        x = widen(z)
        m = self.reference(x, dim)
        return (m + (x - m).exp().sum(dim, keepdim=True).log()).squeeze(dim).to(z.dtype)


def log_softmax(z: Tensor) -> Tensor:
    """z − m − log Σ e^{z − m} over the last axis."""
    shifted = z - maximum(z)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


def smoothed(y: Tensor, V: int, alpha: float, ignore_index: int) -> Tensor:
    """Return equation 48: (1 − α) one-hot + α / V, in float64."""
    return torch.nn.functional.one_hot(y, V).double() * (1 - alpha) + torch.full((V,), alpha / V, dtype=torch.float64)


def reduced(loss: Tensor, counted: Tensor, reduction: str) -> Tensor:
    """Losses as they are, their sum, or their mean over those that count, 0 without any."""
    if reduction == "none":
        return loss
    return loss.sum() / counted.sum().clamp(min=1) if reduction == "mean" else loss.sum()


def against(log_p: Tensor, target: Tensor) -> Tensor:
    """−Σ t log p, where a class without mass costs nothing."""
    return -torch.where(target > 0, target * log_p, 0).sum(-1)


@dataclass(frozen=True)
class CrossEntropy:
    """The loss by stages: log-probabilities, the target with its smoothing, ignored rows, the reduction."""

    log_softmax: Unary = log_softmax
    smoothed: Callable[[Tensor, int, float, int], Tensor] = smoothed
    reduced: Callable[[Tensor, Tensor, str], Tensor] = reduced

    def __call__(self, logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Tensor:
        """Return the loss, in the dtype of the logits."""
        if target.is_floating_point():
            q = (1 - alpha) * target.double() + alpha / logits.shape[-1]
            loss = against(self.log_softmax(widen(logits)), q.to(widen(logits).dtype))
            return self.reduced(loss, torch.ones_like(loss, dtype=torch.bool), reduction).to(logits.dtype)
        loss, counted = self.tokens(logits, target, ignore_index, alpha)
        return self.reduced(loss, counted, reduction).to(logits.dtype)

    def tokens(self, logits: Tensor, target: Tensor, ignore_index: int, alpha: float) -> tuple[Tensor, Tensor]:
        """Return the loss of every token, 0 where it is ignored, and which ones count."""
        counted = target != ignore_index
        log_p = self.log_softmax(widen(logits).masked_fill(~counted[..., None], 0))
        y = target.masked_fill(~counted, 0)
        if alpha:
            loss = against(log_p, self.smoothed(y, logits.shape[-1], alpha, ignore_index).to(log_p.dtype))
        else:
            loss = -log_p.gather(-1, y[..., None]).squeeze(-1)
        return loss.masked_fill(~counted, 0), counted


def token_mean(loss: Tensor, counted: Tensor) -> Tensor:
    """Return the mean over all tokens that count, 0 without any."""
    return reduced(loss, counted, "mean")


@dataclass(frozen=True)
class Perplexity:
    """exp of the mean loss; ``mean`` takes all losses and which of them count."""

    mean: Callable[[Tensor, Tensor], Tensor] = token_mean

    def __call__(self, logits: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        """Return the perplexity, 0-d."""
        loss, counted = CrossEntropy().tokens(logits, target, ignore_index, 0.0)
        return self.mean(loss, counted).exp().to(logits.dtype)
