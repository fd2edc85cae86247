"""Other ways to softmax, log-sum-exp, the losses and perplexity."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from veriformer.verify.mutants.faults.scores import NAN_OF_NOTHING
from veriformer.verify.mutants.formulas import FormulaKernel
from veriformer.verify.mutants.records import Variant
from veriformer.verify.mutants.staged_reference.scores import maximum, reduced, widen

_LOG2E = math.log2(math.e)

_CROSS_ENTROPY = FormulaKernel("cross_entropy")


def _through_exp2(z: Tensor, dim: int) -> Tensor:
    x = widen(z)
    e = torch.exp2((x - maximum(x, dim)) * _LOG2E)
    return (e / e.sum(dim, keepdim=True)).to(z.dtype)


def _scaled_before(z: Tensor, dim: int) -> Tensor:
    """Scores and maximum times log₂e before one is taken from the other, as kernels do that fuse, and here unfused."""
    x = widen(z)
    e = torch.exp2(x * _LOG2E - maximum(x, dim) * _LOG2E)
    return (e / e.sum(dim, keepdim=True)).to(z.dtype)


def _in_dtype(z: Tensor, dim: int) -> Tensor:
    """Every operation rounded to the dtype, as eager code does it."""
    e = torch.exp(z - maximum(z, dim))
    return e / e.sum(dim, keepdim=True)


def _through_logsumexp(z: Tensor, dim: int) -> Tensor:
    x = widen(z)
    return (x - torch.logsumexp(x, dim, keepdim=True)).exp().to(z.dtype)


def _by_reciprocal(z: Tensor, dim: int) -> Tensor:
    x = widen(z)
    e = (x - maximum(x, dim)).exp()
    return (e * e.sum(dim, keepdim=True).reciprocal()).to(z.dtype)


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


def _gathered(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Tensor:
    """Hit and uniform part apart, without an explicit target distribution."""
    if target.is_floating_point():
        return _CROSS_ENTROPY(logits, target, ignore_index, alpha, reduction)
    counted = target != ignore_index
    log_p = torch.log_softmax(widen(logits).masked_fill(~counted[..., None], 0), -1)
    loss = -log_p.gather(-1, target.masked_fill(~counted, 0)[..., None]).squeeze(-1)
    if alpha:
        loss = (loss * (1 - alpha) if alpha < 1 else loss.new_zeros(())) - alpha * log_p.mean(-1)
    return reduced(loss.masked_fill(~counted, 0), counted, reduction).to(logits.dtype)


def _less_the_score(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Tensor:
    """log Σ e^z − z_t, whose gradient is e^{z − log Σ e^z}."""
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


def _in_chunks(logits: Tensor, target: Tensor, ignore_index: int, alpha: float, reduction: str) -> Tensor:
    """A few tokens at a time, so that no more than their logits are live."""
    if target.is_floating_point() or not target.numel():
        return _CROSS_ENTROPY(logits, target, ignore_index, alpha, reduction)
    rows = torch.split(widen(logits).reshape(-1, logits.shape[-1]), _CHUNK), torch.split(target.reshape(-1), _CHUNK)
    parts = [_CROSS_ENTROPY(z, y, ignore_index, alpha, "none") for z, y in zip(*rows, strict=True)]
    return reduced(torch.cat(parts).reshape(target.shape), target != ignore_index, reduction).to(logits.dtype)


DIVIDED_FIRST = ("xp.sum(loss) / _divisor(counted, reduction)", "xp.sum(loss / _divisor(counted, reduction))")
"""Edit of the cross entropy that takes each loss's share of the mean."""

VARIANTS: tuple[Variant, ...] = (
    Variant(identifier="softmax-exp2", title="Softmax through powers of two", kernels={"softmax": _through_exp2}),
    Variant(
        identifier="softmax-exp2-unfused",
        title="Softmax through powers of two, scores and maximum scaled apart",
        kernels={"softmax": _scaled_before},
    ),
    Variant(
        identifier="softmax-dtype", title="Softmax rounded to the dtype at every step", kernels={"softmax": _in_dtype}
    ),
    Variant(identifier="softmax-logsumexp", title="Softmax as exp(z − lse)", kernels={"softmax": _through_logsumexp}),
    Variant(identifier="softmax-reciprocal", title="Softmax by a reciprocal", kernels={"softmax": _by_reciprocal}),
    Variant(
        identifier="softmax-fp64",
        title="Softmax in fp64 throughout",
        kernels={"softmax": FormulaKernel("softmax", dtype=torch.float64)},
    ),
    Variant(identifier="logsumexp-running", title="Log-sum-exp in one pass", kernels={"logsumexp": _running_logsumexp}),
    Variant(
        identifier="scores-base",
        title="The bases of the mutants",
        kernels={name: FormulaKernel(name) for name in ("softmax", "logsumexp", "cross_entropy", "perplexity")},
    ),
    Variant(
        identifier="cross-entropy-gathered",
        title="Cross entropy by log-softmax and gather, smoothing by the mean of log p",
        kernels={"cross_entropy": _gathered},
    ),
    Variant(
        identifier="cross-entropy-logsumexp",
        title="Cross entropy as the log-sum-exp less the score of the class",
        kernels={"cross_entropy": _less_the_score},
    ),
    Variant(
        identifier="cross-entropy-chunked",
        title="Cross entropy a few tokens at a time",
        kernels={"cross_entropy": _in_chunks},
    ),
    Variant(
        identifier="cross-entropy-log-softmax-twice",
        title="Log-softmax is applied twice, which changes nothing: it is idempotent",
        link="https://github.com/bhanML/Co-teaching/issues/4",
        kernels={
            "cross_entropy": FormulaKernel(
                "cross_entropy",
                (
                    (
                        "    return shifted - xp.log(",
                        "    shifted = shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))\n"
                        "    return shifted - xp.log(",
                    ),
                ),
            )
        },
    ),
    Variant(
        identifier="cross-entropy-nan-without-target",
        title="The mean over no target is NaN, and the implementation says so",
        link="https://github.com/pytorch/pytorch/issues/116349",
        kernels={"cross_entropy": FormulaKernel("cross_entropy", (NAN_OF_NOTHING,))},
        claims={"conventions": {"cross_entropy.no_target": "nan"}},
    ),
    Variant(
        identifier="perplexity-divided-first",
        title="Each token's loss is divided by the count before they are summed",
        kernels={"perplexity": FormulaKernel("perplexity", (DIVIDED_FIRST,))},
    ),
)
