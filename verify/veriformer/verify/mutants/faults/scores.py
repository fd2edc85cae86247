"""Faults of softmax, log-sum-exp, the losses and perplexity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.mutants.combinators import Fault, Operation, edited, instead, with_gradient
from veriformer.verify.targets.impl import reference

_OTHERS = "z[(slice(None),) * (axis % z.ndim) + (slice(max(1, z.shape[axis] - 1)),)]"
"""Scores without the last along the axis, unless it is alone."""

BARE_LOG_SOFTMAX = ("shifted = z - xp.max(z, axis=-1, keepdims=True)", "shifted = z")
NAN_OF_NOTHING = ("largest(counted.sum(), 1)", "counted.sum()")
OVER_ALL_POSITIONS = ("largest(counted.sum(), 1)", "largest(counted.size, 1)")
"""Edits of the cross entropy, which other losses reach as well."""


def reduced(loss: Tensor, counted: Tensor, reduction: str) -> Tensor:
    """Return the losses, their sum, or their mean over counted targets, 0 without any."""
    if reduction == "none":
        return loss
    return loss.sum() / counted.sum().clamp(min=1) if reduction == "mean" else loss.sum()


def _first_cotangent(op: Operation, *scores: Tensor, reduction: str, **options: Any) -> Any:
    loss = op(*scores, reduction=reduction, **options)
    if reduction != "none":
        return loss
    return with_gradient(loss, lambda g: g.flatten()[:1].expand(g.numel()).reshape(g.shape))


def _mean_of_rank_means(op: Operation, logits: Tensor, target: Tensor, *, reduction: str, **options: Any) -> Any:
    if reduction != "mean" or logits.ndim < 3 or logits.shape[0] == 0:
        return op(logits, target, reduction=reduction, **options)
    return torch.stack([op(*rank, reduction="mean", **options) for rank in zip(logits, target, strict=True)]).mean()


def _ignored_in_uniform_part(
    op: Operation, logits: Tensor, target: Tensor, *, label_smoothing: float, reduction: str, **options: Any
) -> Any:
    if target.is_floating_point() or not label_smoothing or reduction == "none" or not target.numel():
        return op(logits, target, label_smoothing=label_smoothing, reduction=reduction, **options)
    uniform = op(logits, torch.full_like(logits, 1 / logits.shape[-1], requires_grad=False), reduction=reduction)
    return (1 - label_smoothing) * op(logits, target, reduction=reduction, **options) + label_smoothing * uniform


def _inverted_ignore(
    op: Operation, logits: Tensor, target: Tensor, *, ignore_index: int, label_smoothing: float, reduction: str
) -> Any:
    right = op(logits, target, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction)
    if target.is_floating_point() or not label_smoothing:
        return right
    inside, counted = target.clamp(0, logits.shape[-1] - 1), target != ignore_index
    loss = op(logits.detach(), inside, ignore_index=-1, label_smoothing=label_smoothing, reduction="none")
    wrong = reduced(torch.where(counted, 0, loss), counted, reduction)
    return right + (wrong - right).detach()


def _word_zeroed(
    op: Operation, logits: Tensor, target: Tensor, *, ignore_index: int, label_smoothing: float, reduction: str
) -> Any:
    """Smooth targets by α over V − 2 words: neither the right one nor the ignored one, wherever that is."""
    V, counted = logits.shape[-1], target != ignore_index
    if target.is_floating_point() or not label_smoothing or V <= 2:
        return op(logits, target, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction)
    q = torch.full((*target.shape, V), label_smoothing / (V - 2), dtype=logits.dtype)
    if -V <= ignore_index < V:
        q[..., ignore_index] = 0
    q = q.scatter(-1, target.masked_fill(~counted, 0)[..., None], 1 - label_smoothing)
    loss = op(logits.masked_fill(~counted[..., None], 0), q, reduction="none")
    return reduced(loss.masked_fill(~counted, 0), counted, reduction)


_WINDOW = 3


def _windows(logits: Tensor, *targets: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield windows of the logits in fp32 or wider, and of each of the targets."""
    rows = widen(logits).reshape(-1, logits.shape[-1])
    return zip(*(torch.split(x, _WINDOW) for x in (rows, *(y.reshape(-1) for y in targets))), strict=True)


def _mean_of_window_means(op: Operation, logits: Tensor, target: Tensor, *, ignore_index: int) -> Any:
    means = [
        reference.cross_entropy(z, y, ignore_index=ignore_index)
        for z, y in _windows(logits, target)
        if (y != ignore_index).any()
    ]
    if not means:
        return op(logits, target, ignore_index=ignore_index)
    return torch.stack(means).mean().exp().to(logits.dtype)


def _boundaries_unscored(op: Operation, logits: Tensor, target: Tensor, *, ignore_index: int) -> Tensor:
    place = torch.arange(target.numel()).reshape(target.shape)
    scored = target.masked_fill((place % _WINDOW == 0) & (place >= _WINDOW), ignore_index)
    total = widen(logits).sum() * 0
    for z, some, y in _windows(logits, scored, target):
        total = total + reference.cross_entropy(z, some, ignore_index=ignore_index) * (y != ignore_index).sum()
    return (total / (target != ignore_index).sum().clamp(min=1)).exp().to(logits.dtype)


FAULTS: dict[str, dict[str, Fault]] = {
    "SM-02": {
        "softmax": edited("softmax", ("z - xp.max(z, axis=axis, keepdims=True)", "z")),
        "logsumexp": edited("logsumexp", ("c = xp.where(empty, 0, m)", "c = xp.asarray(0)")),
        "cross_entropy": edited("cross_entropy", BARE_LOG_SOFTMAX),
    },
    "SINK-01": {
        "softmax": edited("softmax", ("xp.max(z,", f"xp.max({_OTHERS},")),
        "logsumexp": edited(
            "logsumexp",
            (
                "c = xp.where(empty, 0, m)",
                f"c = xp.max({_OTHERS}, axis=axis, keepdims=True)\n    c = xp.where(exactly_equal(c, -math.inf), 0, c)",
            ),
        ),
    },
    "CE-01": {"cross_entropy": edited("cross_entropy", NAN_OF_NOTHING)},
    "CE-02": {"cross_entropy": edited("cross_entropy", OVER_ALL_POSITIONS)},
    "CE-03": {
        "cross_entropy": edited(
            "cross_entropy",
            (
                "    shifted = z - xp.max(z",
                "    e = xp.exp(z - xp.max(z, axis=-1, keepdims=True))\n"
                "    z = e / xp.sum(e, axis=-1, keepdims=True)\n"
                "    shifted = z - xp.max(z",
            ),
        )
    },
    "CE-06": {"cross_entropy": instead(_first_cotangent)},
    "CE-07": {"cross_entropy": instead(_mean_of_rank_means)},
    "CE-09": {"cross_entropy": edited("cross_entropy", ("xp.sum(xp.exp(shifted)", "2 * xp.sum(xp.exp(shifted)"))},
    "LS-01": {"cross_entropy": instead(_ignored_in_uniform_part)},
    "LS-02": {"cross_entropy": edited("cross_entropy", ("share = xp.asarray(alpha)", "share = xp.asarray(1)"))},
    "LS-03": {"cross_entropy": instead(_inverted_ignore)},
    "LS-04": {"cross_entropy": instead(_word_zeroed)},
    "PPL-01": {"perplexity": instead(_mean_of_window_means)},
    "PPL-02": {"perplexity": instead(_boundaries_unscored)},
}
