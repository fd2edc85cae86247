"""Faults of softmax, log-sum-exp, the losses and perplexity."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, replaced_by
from veriformer.verify.mutants.staged_reference.scores import (
    CrossEntropy,
    LogSumExp,
    Perplexity,
    Softmax,
    log_softmax,
    maximum,
    reduced,
    smoothed,
    token_mean,
    widen,
)


def _nothing(z: Tensor, dim: int) -> Tensor:
    return torch.zeros((), dtype=z.dtype)


def _bare_log_softmax(z: Tensor) -> Tensor:
    return z - z.exp().sum(-1, keepdim=True).log()


def _all_but_the_last(z: Tensor, dim: int) -> Tensor:
    n = z.shape[dim]
    return maximum(z.narrow(dim, 0, n - 1), dim) if n > 1 else _nothing(z, dim)


def _nan_of_nothing(loss: Tensor, counted: Tensor, reduction: str) -> Tensor:
    return loss.sum() / counted.sum() if reduction == "mean" else reduced(loss, counted, reduction)


def _over_all_positions(loss: Tensor, counted: Tensor, reduction: str) -> Tensor:
    return loss.sum() / max(1, counted.numel()) if reduction == "mean" else reduced(loss, counted, reduction)


def _mean_of_rank_means(loss: Tensor, counted: Tensor, reduction: str) -> Tensor:
    if reduction != "mean" or loss.ndim < 2 or loss.shape[0] == 0:
        return reduced(loss, counted, reduction)
    return torch.stack([token_mean(*rank) for rank in zip(loss, counted, strict=True)]).mean()


class _FirstCotangent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: Tensor) -> Tensor:
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g.flatten()[:1].expand(g.numel()).reshape(g.shape)


def _first_cotangent(loss: Tensor, counted: Tensor, reduction: str) -> Tensor:
    if reduction != "none":
        return reduced(loss, counted, reduction)
    scaled: Tensor = _FirstCotangent.apply(loss)  # type: ignore[no-untyped-call]
    return scaled


def _gathered_twice(z: Tensor) -> Tensor:
    copies = torch.cat([z, z], -1)
    return log_softmax(copies)[..., : z.shape[-1]]


def _ignored_in_uniform_part(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Tensor:
    if target.is_floating_point() or not alpha or reduction == "none" or not target.numel():
        return CrossEntropy()(logits, target, ignore_index, alpha, reduction)
    hit, counted = CrossEntropy().tokens(logits, target, ignore_index, 0.0)
    uniform = -log_softmax(widen(logits)).mean(-1)
    parts = reduced(hit, counted, reduction), reduced(uniform, torch.ones_like(counted), reduction)
    return ((1 - alpha) * parts[0] + alpha * parts[1]).to(logits.dtype)


def _mass_of_one(y: Tensor, V: int, alpha: float, ignore_index: int) -> Tensor:
    return torch.nn.functional.one_hot(y, V).double() * (1 - alpha) + torch.full((V,), 1 / V, dtype=torch.float64)


def _inverted_ignore(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Tensor:
    right = CrossEntropy()(logits, target, ignore_index, alpha, reduction)
    if target.is_floating_point() or not alpha:
        return right
    inside = target.clamp(0, logits.shape[-1] - 1)
    loss, _ = CrossEntropy().tokens(logits.detach(), inside, -1, alpha)
    counted = target != ignore_index
    wrong = reduced(torch.where(counted, 0, loss), counted, reduction).to(logits.dtype)
    return right + (wrong - right).detach()


def _word_zeroed(y: Tensor, V: int, alpha: float, ignore_index: int) -> Tensor:
    if V <= 2:
        return smoothed(y, V, alpha, ignore_index)
    q = torch.full((*y.shape, V), alpha / (V - 2), dtype=torch.float64)
    if -V <= ignore_index < V:
        q[..., ignore_index] = 0
    return q.scatter(-1, y[..., None], 1 - alpha)


_WINDOW = 3


def _mean_of_window_means(loss: Tensor, counted: Tensor) -> Tensor:
    windows = zip(torch.split(loss.flatten(), _WINDOW), torch.split(counted.flatten(), _WINDOW), strict=True)
    means = [token_mean(*window) for window in windows if window[1].any()]
    return torch.stack(means).mean() if means else token_mean(loss, counted)


def _boundaries_unscored(loss: Tensor, counted: Tensor) -> Tensor:
    scored = counted.flatten() & (
        (torch.arange(counted.numel()) % _WINDOW != 0) | (torch.arange(counted.numel()) < _WINDOW)
    )
    total = loss.sum() * 0
    for window, some, weight in zip(*(torch.split(x.flatten(), _WINDOW) for x in (loss, scored, counted)), strict=True):
        total = total + token_mean(window.masked_fill(~some, 0), some) * weight.sum()
    return total / counted.sum().clamp(min=1)


FAULTS: dict[str, dict[str, Fault]] = {
    "SM-02": {
        "softmax": replaced_by(Softmax(reference=_nothing)),
        "logsumexp": replaced_by(LogSumExp(reference=_nothing)),
        "cross_entropy": replaced_by(CrossEntropy(log_softmax=_bare_log_softmax)),
    },
    "SINK-01": {
        "softmax": replaced_by(Softmax(reference=_all_but_the_last)),
        "logsumexp": replaced_by(LogSumExp(reference=_all_but_the_last)),
    },
    "CE-01": {"cross_entropy": replaced_by(CrossEntropy(reduced=_nan_of_nothing))},
    "CE-02": {"cross_entropy": replaced_by(CrossEntropy(reduced=_over_all_positions))},
    "CE-03": {"cross_entropy": replaced_by(CrossEntropy(log_softmax=lambda z: log_softmax(z.softmax(-1))))},
    "CE-06": {"cross_entropy": replaced_by(CrossEntropy(reduced=_first_cotangent))},
    "CE-07": {"cross_entropy": replaced_by(CrossEntropy(reduced=_mean_of_rank_means))},
    "CE-09": {"cross_entropy": replaced_by(CrossEntropy(log_softmax=_gathered_twice))},
    "LS-01": {"cross_entropy": replaced_by(_ignored_in_uniform_part)},
    "LS-02": {"cross_entropy": replaced_by(CrossEntropy(smoothed=_mass_of_one))},
    "LS-03": {"cross_entropy": replaced_by(_inverted_ignore)},
    "LS-04": {"cross_entropy": replaced_by(CrossEntropy(smoothed=_word_zeroed))},
    "PPL-01": {"perplexity": replaced_by(Perplexity(mean=_mean_of_window_means))},
    "PPL-02": {"perplexity": replaced_by(Perplexity(mean=_boundaries_unscored))},
}
