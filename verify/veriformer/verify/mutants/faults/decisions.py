"""Faults of smoothing, temperature, calibration and the masked objective."""

from __future__ import annotations

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, replaced_by
from veriformer.verify.mutants.staged_reference.calibration import CalibrationError
from veriformer.verify.mutants.staged_reference.scores import CrossEntropy, widen


def _whole_mass(target: Tensor, num_classes: int, alpha: float) -> Tensor:
    """Every class has 1/V instead of α/V."""
    y = (1 - alpha) * torch.nn.functional.one_hot(target, num_classes).double() + 1 / num_classes
    return y.to(torch.get_default_dtype())


def _bare_exponentials(logits: Tensor, temperature: float) -> Tensor:
    e = (widen(logits) / temperature).exp()
    return (e / e.sum(-1, keepdim=True)).to(logits.dtype)


def _open_above(confidence: Tensor, bins: int) -> Tensor:
    """Bins closed below, so that 1 falls into one more."""
    edges = (torch.arange(bins + 1, dtype=torch.float64) / bins).to(confidence.dtype)
    return torch.bucketize(confidence, edges, right=True) - 1


def _centre(confidence: Tensor, m: int, bins: int) -> Tensor:
    return torch.tensor((m + 0.5) / bins, dtype=confidence.dtype)


def _masked_tokens(logits: Tensor, labels: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    return CrossEntropy().tokens(logits, labels, ignore_index, 0.0)


def _over_nothing(logits: Tensor, labels: Tensor, *, ignore_index: int) -> Tensor:
    loss, counted = _masked_tokens(logits, labels, ignore_index)
    return (loss.sum() / counted.sum()).to(logits.dtype)


def _over_all_positions(logits: Tensor, labels: Tensor, *, ignore_index: int) -> Tensor:
    loss, counted = _masked_tokens(logits, labels, ignore_index)
    return (loss.sum() / max(1, counted.numel())).to(logits.dtype)


FAULTS: dict[str, dict[str, Fault]] = {
    "LS-02": {"smooth_labels": replaced_by(_whole_mass)},
    "SM-02": {"temperature_scale": replaced_by(_bare_exponentials)},
    "CE-01": {"masked_lm_loss": replaced_by(_over_nothing)},
    "CE-02": {"masked_lm_loss": replaced_by(_over_all_positions)},
    "CAL-01": {"expected_calibration_error": replaced_by(CalibrationError(place=_open_above))},
    "CAL-04": {"expected_calibration_error": replaced_by(CalibrationError(conf=_centre))},
}
