"""Other ways to smoothing, temperature, calibration and the masked objective."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.correct_variants.scores import DIVIDED_FIRST, maximum
from veriformer.verify.mutants.records import Variant, variant

_LOG2E = math.log2(math.e)


def _blended(target: Tensor, num_classes: int, alpha: float) -> Tensor:
    y = F.one_hot(target, num_classes).to(torch.get_default_dtype())
    return torch.lerp(y, torch.full_like(y, 1 / num_classes), alpha)


def _added(target: Tensor, num_classes: int, alpha: float) -> Tensor:
    share = torch.full((*target.shape, num_classes), alpha / num_classes, dtype=torch.get_default_dtype())
    return share.scatter_add(-1, target[..., None], share.new_full((*target.shape, 1), 1 - alpha))


def _centred(z: Tensor, T: float) -> Tensor:
    """Compute (z − max) / T in float64, where no T in reach vanishes."""
    x = z.double()
    return (x - maximum(x)) / T


def _through_log_softmax(logits: Tensor, temperature: float) -> Tensor:
    return torch.log_softmax(_centred(logits, temperature), -1).exp().to(logits.dtype)


def _through_exp2(logits: Tensor, temperature: float) -> Tensor:
    e = torch.exp2(_centred(logits, temperature) * _LOG2E)
    return (e / e.sum(-1, keepdim=True)).to(logits.dtype)


def _divided_first(logits: Tensor, temperature: float) -> Tensor:
    """Compute softmax(z / T) as usually written, at temperatures at which nothing overflows."""
    if not 2.0**-10 <= temperature <= 2.0**20:
        return _through_log_softmax(logits, temperature)
    return torch.softmax(widen(logits) / temperature, -1).to(logits.dtype)


def _by_histogram(probs: Tensor, target: Tensor, *, num_bins: int) -> Tensor:
    """Sum hits and confidences in separate histograms."""
    confidence = probs.amax(-1)
    edges = (torch.arange(1, num_bins, dtype=torch.float64) / num_bins).to(probs.dtype)
    place = torch.searchsorted(edges, confidence.flatten())
    hit = (probs.argmax(-1) == target).flatten().double()
    hits, sums = (torch.bincount(place, x.double(), minlength=num_bins) for x in (hit, confidence.flatten()))
    return ((hits - sums).abs().sum() / hit.numel()).to(probs.dtype)


def _by_edges(probs: Tensor, target: Tensor, *, num_bins: int) -> Tensor:
    """Mask every bin by its two edges, as torchmetrics and others do."""
    confidence = probs.amax(-1).flatten()
    surplus = widen((probs.argmax(-1) == target).flatten().to(probs.dtype)) - widen(confidence)
    edges = (torch.arange(num_bins + 1, dtype=torch.float64) / num_bins).to(probs.dtype)
    error = surplus.new_zeros(())
    for m in range(num_bins):
        held = (confidence > edges[m]) & (confidence <= edges[m + 1])
        held = held | (confidence == 0) if m == 0 else held
        error = error + surplus.masked_fill(~held, 0).sum().abs()
    return (error / surplus.numel()).to(probs.dtype)


def _by_functional(logits: Tensor, labels: Tensor, *, ignore_index: int) -> Tensor:
    rows, y = widen(logits).reshape(-1, logits.shape[-1]), labels.reshape(-1)
    kept = y != ignore_index
    return (F.cross_entropy(rows[kept], y[kept], reduction="sum") / kept.sum().clamp(min=1)).to(logits.dtype)


VARIANTS: tuple[Variant, ...] = (
    variant("smooth-labels-lerp", "Between one-hot and uniform", smooth_labels=_blended),
    variant("smooth-labels-added", "One share for all, 1 − α more", smooth_labels=_added),
    variant(
        "temperature-log-softmax", "Temperature through log-softmax in fp64", temperature_scale=_through_log_softmax
    ),
    variant("temperature-exp2", "Temperature through powers of two", temperature_scale=_through_exp2),
    variant("temperature-divided-first", "softmax(z / T) with the division first", temperature_scale=_divided_first),
    variant(
        "calibration-base", "The base of the mutants", expected_calibration_error=kernel("expected_calibration_error")
    ),
    variant("calibration-histogram", "Two histograms in fp64", expected_calibration_error=_by_histogram),
    variant("calibration-edges", "A mask for every bin", expected_calibration_error=_by_edges),
    variant("masked-lm-functional", "PyTorch's cross entropy on the masked rows alone", masked_lm_loss=_by_functional),
    variant("masked-lm-weighted", "Losses times their share", masked_lm_loss=kernel("masked_lm_loss", DIVIDED_FIRST)),
    variant("masked-lm-base", "The base of the mutants", masked_lm_loss=kernel("masked_lm_loss")),
)
