"""The cross entropy of logits, over class indices or probabilities (equation 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.any_size import as_indices, counting, everywhere, largest
from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.vocabulary import Array


def cross_entropy(
    xp: Any,
    logits: Any,
    target: Any,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """L = −Σ_i y_i log p_i with p = softmax(logits), over the last axis, then reduced over all others.

    logits [..., V] may hold −∞ where the target has no mass. target is an integer ndarray [...] or an array of
    probabilities [..., V]. With smoothing α the target becomes (1 − α) y + α / V. "mean" divides by the number of
    targets that are not ignored (rows, for probabilities) and is 0 when there are none.
    """
    counted = _counted(target, ignore_index)
    z = xp.where(counted[..., None], logits, 0)
    if _is_index(target):
        loss = _index_loss(xp, z, np.where(counted, target, 0), label_smoothing)
    else:
        loss = -xp.sum(_products(xp, _smooth(xp, target, label_smoothing), _log_softmax(xp, z)), axis=-1)
    loss = xp.where(counted, loss, 0)
    if reduction == "none":
        return loss
    return xp.sum(loss) / _divisor(counted, reduction)


def cross_entropy_vjp(
    xp: Any,
    logits: Any,
    target: Any,
    g: Any,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> tuple[Any, Any | None]:
    """d logits = w (p Σ_i y_i − y), and d target = −w (1 − α) log p for probabilities (None for indices).

    w is the row's share of the cotangent g: g itself for "sum", g over the count for "mean", g [...] for "none".
    """
    counted = _counted(target, ignore_index)
    z = xp.where(counted[..., None], logits, 0)
    w = _row_weights(xp, g, counted, reduction)
    if _is_index(target):
        y = np.where(counted, target, 0)[..., None] == counting(z.shape[-1])
        return w * _index_gradient(xp, z, y, label_smoothing), None
    y = _smooth(xp, target, label_smoothing)
    log_p = _log_softmax(xp, z)
    d_logits = xp.exp(log_p) * xp.sum(y, axis=-1, keepdims=True) - y
    return w * d_logits, -(w * (log_p * (1 - xp.asarray(label_smoothing))))


def _is_index(target: Any) -> bool:
    return not isinstance(target, Array) and as_indices(target).dtype.kind in "iu"


def _counted(target: Any, ignore_index: int) -> Any:
    if _is_index(target):
        return as_indices(target != ignore_index)
    return everywhere(*target.shape[:-1])


def _divisor(counted: Any, reduction: str) -> Any:
    return largest(counted.sum(), 1) if reduction == "mean" else 1


def _row_weights(xp: Any, g: Any, counted: NDArray[np.bool_], reduction: str) -> Any:
    share = g if reduction == "none" else xp.broadcast_to(g / _divisor(counted, reduction), counted.shape)
    return xp.reshape(xp.where(counted, share, 0), (*counted.shape, 1))


def _log_softmax(xp: Any, z: Any) -> Any:
    shifted = z - xp.max(z, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))


def _index_loss(xp: Any, z: Any, y: NDArray[np.int_], alpha: float) -> Any:
    log_p = _log_softmax(xp, z)
    hit = -xp.take_along(log_p, y[..., None], -1)
    if alpha:
        share = xp.asarray(alpha) / z.shape[-1]
        hit = hit * (1 - xp.asarray(alpha)) - xp.sum(log_p, axis=-1, keepdims=True) * share
    return xp.reshape(hit, y.shape)


def _index_gradient(xp: Any, z: Any, y: NDArray[np.bool_], alpha: float) -> Any:
    p = xp.exp(_log_softmax(xp, z))
    if not alpha:
        return xp.where(y, p - 1, p)
    share = xp.asarray(alpha) / z.shape[-1]
    return xp.where(y, p - (share + (1 - xp.asarray(alpha))), p - share)


def _smooth(xp: Any, y: Any, alpha: float) -> Any:
    return y * (1 - xp.asarray(alpha)) + xp.asarray(alpha) / y.shape[-1] if alpha else y


def _products(xp: Any, y: Any, log_p: Any) -> Any:
    """y log p with 0 · log 0 = 0, the limit that the statement as printed leaves out."""
    void = exactly_equal(log_p, -math.inf) & exactly_equal(y, 0)
    return xp.where(void, 0, y * xp.where(void, 0, log_p))
