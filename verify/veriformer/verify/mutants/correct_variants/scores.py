"""Other ways to softmax, log-sum-exp, the losses and perplexity."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.faults.scores import NAN_OF_NOTHING, reduced
from veriformer.verify.mutants.records import Variant, variant

_LOG2E = math.log2(math.e)

_CROSS_ENTROPY = kernel("cross_entropy")


def maximum(z: Tensor, dim: int = -1) -> Tensor:
    """Return the largest entry along dim, kept as an axis, 0 where there is no finite one; a constant to autograd."""
    m = z.detach().amax(dim, keepdim=True)
    return m.masked_fill(m.isinf(), 0)


def _through_exp2(z: Tensor, dim: int) -> Tensor:
    x = widen(z)
    e = torch.exp2((x - maximum(x, dim)) * _LOG2E)
    return (e / e.sum(dim, keepdim=True)).to(z.dtype)


def _scaled_before(z: Tensor, dim: int) -> Tensor:
    """Compute 2^(z log₂e − max log₂e), products rounded first: fused kernels' formula, here unfused."""
    x = widen(z)
    e = torch.exp2(x * _LOG2E - maximum(x, dim) * _LOG2E)
    return (e / e.sum(dim, keepdim=True)).to(z.dtype)


def _in_dtype(z: Tensor, dim: int) -> Tensor:
    """Round every operation to the dtype, as eager code does."""
    e = torch.exp(z - maximum(z, dim))
    return e / e.sum(dim, keepdim=True)


def _through_logsumexp(z: Tensor, dim: int) -> Tensor:
    x = widen(z)
    return (x - torch.logsumexp(x, dim, keepdim=True)).exp().to(z.dtype)


def _by_running_sum(z: Tensor, dim: int) -> Tensor:
    """Compute log-sum-exp online: a single pass that rescales the sum whenever the maximum grows."""
    x = widen(z)
    m, l = torch.full_like(x.select(dim, 0), -math.inf), torch.zeros_like(x.select(dim, 0))
    for s in x.unbind(dim):
        new = torch.maximum(m, s.detach())
        safe = new.masked_fill(new.isinf(), 0)
        l, m = l * (m - safe).exp() + (s - safe).exp(), new
    return m.masked_fill(m.isinf(), 0) + l.log()


def _running_logsumexp(z: Tensor, dim: int) -> Tensor:
    return _by_running_sum(z, dim).to(z.dtype)


def _gathered(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Any:
    """Compute the target's and the uniform part separately, without an explicit target distribution."""
    if target.is_floating_point():
        return _CROSS_ENTROPY(logits, target, ignore_index, alpha, reduction)
    counted = target != ignore_index
    log_p = torch.log_softmax(widen(logits).masked_fill(~counted[..., None], 0), -1)
    loss = -log_p.gather(-1, target.masked_fill(~counted, 0)[..., None]).squeeze(-1)
    if alpha:
        loss = (loss * (1 - alpha) if alpha < 1 else loss.new_zeros(())) - alpha * log_p.mean(-1)
    return reduced(loss.masked_fill(~counted, 0), counted, reduction).to(logits.dtype)


def _less_the_score(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Any:
    """Compute log Σ e^z − z_t, whose gradient is e^{z − log Σ e^z} less the target."""
    if target.is_floating_point():
        return _CROSS_ENTROPY(logits, target, ignore_index, alpha, reduction)
    counted = target != ignore_index
    z = widen(logits).masked_fill(~counted[..., None], 0)
    score = z.gather(-1, target.masked_fill(~counted, 0)[..., None]).squeeze(-1)
    if alpha:
        score = (score * (1 - alpha) if alpha < 1 else 0) + alpha * z.mean(-1)
    loss = torch.logsumexp(z, -1) - score
    return reduced(loss.masked_fill(~counted, 0), counted, reduction).to(logits.dtype)


_CHUNK = 2


def _in_chunks(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Any:
    """Compute the loss of a few tokens at a time, so that only their logits are live."""
    if target.is_floating_point() or not target.numel():
        return _CROSS_ENTROPY(logits, target, ignore_index, alpha, reduction)
    rows = torch.split(widen(logits).reshape(-1, logits.shape[-1]), _CHUNK), torch.split(target.reshape(-1), _CHUNK)
    parts = [_CROSS_ENTROPY(z, y, ignore_index, alpha, "none") for z, y in zip(*rows, strict=True)]
    return reduced(torch.cat(parts).reshape(target.shape), target != ignore_index, reduction).to(logits.dtype)


DIVIDED_FIRST = ("xp.sum(loss) / _divisor(counted, reduction)", "xp.sum(loss / _divisor(counted, reduction))")
"""Edit of the cross entropy that takes each loss's share of the mean."""

_RECIPROCAL = ("e / xp.sum(e, axis=axis, keepdims=True)", "e * (1 / xp.sum(e, axis=axis, keepdims=True))")

VARIANTS: tuple[Variant, ...] = (
    variant("softmax-exp2", "Softmax through powers of two", softmax=_through_exp2),
    variant(
        "softmax-exp2-unfused", "Softmax through powers of two, scores and maximum scaled apart", softmax=_scaled_before
    ),
    variant("softmax-dtype", "Softmax rounded to the dtype at every step", softmax=_in_dtype),
    variant("softmax-logsumexp", "Softmax as exp(z − lse)", softmax=_through_logsumexp),
    variant("softmax-reciprocal", "Softmax by a reciprocal", softmax=kernel("softmax", _RECIPROCAL)),
    variant("softmax-fp64", "Softmax in fp64 throughout", softmax=kernel("softmax", dtype=torch.float64)),
    variant("logsumexp-running", "Log-sum-exp in one pass", logsumexp=_running_logsumexp),
    variant(
        "scores-base",
        "The bases of the mutants",
        {name: kernel(name) for name in ("softmax", "logsumexp", "cross_entropy", "perplexity")},
    ),
    variant(
        "cross-entropy-gathered",
        "Cross entropy by log-softmax and gather, smoothing by the mean of log p",
        cross_entropy=_gathered,
    ),
    variant(
        "cross-entropy-logsumexp",
        "Cross entropy as the log-sum-exp less the score of the class",
        cross_entropy=_less_the_score,
    ),
    variant("cross-entropy-chunked", "Cross entropy a few tokens at a time", cross_entropy=_in_chunks),
    variant(
        "cross-entropy-log-softmax-twice",
        "Log-softmax is applied twice, which changes nothing: it is idempotent",
        link="https://github.com/bhanML/Co-teaching/issues/4",
        cross_entropy=kernel(
            "cross_entropy",
            (
                "    return shifted - xp.log(",
                "    shifted = shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))\n"
                "    return shifted - xp.log(",
            ),
        ),
    ),
    variant(
        "cross-entropy-nan-without-target",
        "The mean over no target is NaN, and the implementation says so",
        link="https://github.com/pytorch/pytorch/issues/116349",
        claims={"conventions": {"cross_entropy.no_target": "nan"}},
        cross_entropy=kernel("cross_entropy", NAN_OF_NOTHING),
    ),
    variant(
        "perplexity-divided-first",
        "Each token's loss is divided by the count before they are summed",
        perplexity=kernel("perplexity", DIVIDED_FIRST),
    ),
)
