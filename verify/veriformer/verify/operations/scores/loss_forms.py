"""Cross-entropy with the log-sum-exp subtracted last, as in fused kernels.

L_t = lse(z_t) Σ y − Σ y z_t. Over the reals it is −Σ y log p; in floats it carries the rounding of the log-sum-exp,
which is as large as the logits are far from 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.verify.operations.scores.along_axis import through_maximum


def loss(
    xp: Any,
    logits: Any,
    target: Any,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """Return the loss by the log-sum-exp; arguments as in the spec's formula."""
    counted, y, hit = _masses(xp, logits, target, ignore_index, label_smoothing)
    z = xp.where(counted[..., None], logits, 0)
    total = _log_total(xp, z)
    if hit is not None:
        losses = xp.reshape(total, counted.shape) - xp.reshape(xp.take_along(z, hit[..., None], -1), counted.shape)
    else:
        void = exactly_equal(y, 0)
        weighted = xp.where(void, 0, y * xp.where(void, 0, z))
        losses = xp.sum(y, axis=-1) * xp.reshape(total, counted.shape) - xp.sum(weighted, axis=-1)
    losses = xp.where(counted, losses, 0)
    return losses if reduction == "none" else xp.sum(losses) / _count(counted, reduction)


def loss_gradient(
    xp: Any,
    logits: Any,
    target: Any,
    g: Any,
    *,
    kept: bool = False,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """Compute (w Σ y / s) e − w y with s = Σ e, e = e^{z − max}, by the chain rule; w is the row's share of g.

    With kept, where the forward pass has kept the log-sum-exp, w Σ y e^{z − lse} − w y.
    """
    counted, y, _ = _masses(xp, logits, target, ignore_index, label_smoothing)
    z = xp.where(counted[..., None], logits, 0)
    share = g if reduction == "none" else xp.broadcast_to(g / _count(counted, reduction), counted.shape)
    w = xp.reshape(xp.where(counted, share, 0), (*counted.shape, 1))
    of_total = w * xp.sum(y, axis=-1, keepdims=True)
    if kept:
        return xp.exp(z - _log_total(xp, z)) * of_total - w * y
    e = xp.exp(z - xp.max(z, axis=-1, keepdims=True))
    dz = e * (of_total / xp.sum(e, axis=-1, keepdims=True))
    return through_maximum(xp, z, dz, of_total, -1) - w * y


def _log_total(xp: Any, z: Any) -> Any:
    m = xp.max(z, axis=-1, keepdims=True)
    return m + xp.log(xp.sum(xp.exp(z - m), axis=-1, keepdims=True))


def _count(counted: np.ndarray, reduction: str) -> int:
    return max(int(counted.sum()), 1) if reduction == "mean" else 1


def _masses(xp: Any, logits: Any, target: Any, ignore_index: int, alpha: float) -> tuple[np.ndarray, Any, Any]:
    """Return the mask of counted rows, the smoothed target masses, and the class indices if these suffice."""
    vocabulary = logits.shape[-1]
    if not isinstance(target, np.ndarray):
        y = target * (1 - xp.asarray(alpha)) + xp.asarray(alpha) / vocabulary if alpha else target
        return np.ones(target.shape[:-1], dtype=bool), y, None
    counted = np.asarray(target != ignore_index)
    hit = np.where(counted, target, 0)
    one_hot = (hit[..., None] == np.arange(vocabulary)).astype(np.float64)
    if not alpha:
        return counted, xp.asarray(one_hot), hit
    return counted, xp.asarray(one_hot) * (1 - xp.asarray(alpha)) + xp.asarray(alpha) / vocabulary, None
