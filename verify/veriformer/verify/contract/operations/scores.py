"""Scores to decisions: losses, probabilities, and how well they are calibrated."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from torch import Tensor


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    """Scores turned into probabilities along one axis (1, 21, 25)."""


def logsumexp(z: Tensor, dim: int = -1) -> Tensor:
    """The logarithm of the sum of exponentials along one axis; −∞ over an empty one (12)."""


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of classes or probabilities, averaged over targets that are not ignored (2, 38, 48)."""


def perplexity(logits: Tensor, target: Tensor, *, ignore_index: int = -100) -> Tensor:
    """The exponential of the mean negative log-likelihood over all counted tokens (41)."""


def smooth_labels(target: Tensor, num_classes: int, alpha: float) -> Tensor:
    """Classes as probabilities, of which a share alpha is spread over all classes (48)."""


def temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    """Probabilities of scores divided by a temperature."""


def expected_calibration_error(probs: Tensor, target: Tensor, *, num_bins: int = 15) -> Tensor:
    """The mean distance between accuracy and confidence over bins (lo, hi], the first of which also holds 0."""


def masked_lm_loss(logits: Tensor, labels: Tensor, *, ignore_index: int = -100) -> Tensor:
    """The mean negative log-likelihood over the masked positions."""
