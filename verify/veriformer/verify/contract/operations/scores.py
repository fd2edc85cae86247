"""Scores to decisions: losses, probabilities, and how well they are calibrated."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from torch import Tensor


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    """Softmax along one axis: e^(z_i) / Σ_j e^(z_j) (1, 21, 25)."""


def logsumexp(z: Tensor, dim: int = -1) -> Tensor:
    """log Σ_i e^(z_i) along one axis; −∞ over an empty one (12)."""


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of class indices or probabilities; the mean is over targets not ignored (2, 38, 48)."""


def perplexity(logits: Tensor, target: Tensor, *, ignore_index: int = -100) -> Tensor:
    """exp of the mean negative log-likelihood over all counted tokens (41)."""


def smooth_labels(target: Tensor, num_classes: int, alpha: float) -> Tensor:
    """Label smoothing: class indices as probabilities (1 − α) · onehot + α / num_classes (48)."""


def temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    """softmax(logits / temperature)."""


def expected_calibration_error(probs: Tensor, target: Tensor, *, num_bins: int = 15) -> Tensor:
    """Expected calibration error over bins (lo, hi], of which the first also holds 0."""


def masked_lm_loss(logits: Tensor, labels: Tensor, *, ignore_index: int = -100) -> Tensor:
    """Masked language-model loss: the mean negative log-likelihood over the masked positions."""
