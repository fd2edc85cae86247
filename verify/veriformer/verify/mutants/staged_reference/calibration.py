"""The expected calibration error, by stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.verify.mutants.staged_reference.scores import widen


def bins_closed_above(confidence: Tensor, bins: int) -> Tensor:
    """Return the bin of each confidence: (lo, hi], and the first for 0."""
    inner = (torch.arange(1, bins, dtype=torch.float64) / bins).to(confidence.dtype)
    return torch.bucketize(confidence, inner)


def mean_confidence(confidence: Tensor, m: int, bins: int) -> Tensor:
    """Return the mean of the confidences in bin m."""
    return confidence.mean()


@dataclass(frozen=True)
class CalibrationError:
    """Σ |B| / n · |acc − conf|, bin by bin. place: the bin of each sample. conf: what stands for a bin's confidence."""

    place: Callable[[Tensor, int], Tensor] = bins_closed_above
    conf: Callable[[Tensor, int, int], Tensor] = mean_confidence

    def __call__(self, probs: Tensor, target: Tensor, *, num_bins: int) -> Tensor:
        """Return the error, 0-d."""
        confidence, hit = probs.amax(-1).flatten(), (probs.argmax(-1) == target).flatten()
        place, wide = self.place(confidence, num_bins), widen(confidence)
        error = wide.new_zeros(())
        for m in sorted(set(place.tolist())):
            held = place == m
            gap = hit[held].to(wide.dtype).mean() - self.conf(wide[held], m, num_bins)
            error = error + gap.abs() * held.sum().to(wide.dtype) / held.numel()
        return error.to(probs.dtype)
