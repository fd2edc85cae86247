"""Masked softmax: causal masks, windows and boolean masks, and the softmax over visible keys (equation 24a)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.any_size import counting, everywhere

Mask = NDArray[np.bool_]


def causal_mask(n_q: int, n_k: int, *, window: int | None = None, alignment: str = "bottom-right") -> Mask:
    """Boolean [n_q, n_k], True where query i may see key j: j ≤ i + n_k − n_q, and j > i + n_k − n_q − window.

    The last query sees the last key ("bottom-right"); "top-left" drops the offset n_k − n_q.
    """
    offset = {"bottom-right": n_k - n_q, "top-left": 0}[alignment]
    last = counting(n_q)[:, None] + offset
    j = counting(n_k)[None, :]
    seen: Mask = j <= last
    return seen if window is None else seen & (j > last - window)


def visible(
    n_q: int,
    n_k: int,
    *,
    mask: Mask | None = None,
    is_causal: bool = False,
    window: int | None = None,
    alignment: str = "bottom-right",
) -> Mask:
    """The pairs that mask, causality and window all admit; rank 2 to 4, aligned right with [B, H, n_q, n_k]."""
    if window is not None and not is_causal:
        raise ValueError("window: expected is_causal=True with it, got is_causal=False")
    seen = causal_mask(n_q, n_k, window=window, alignment=alignment) if is_causal else everywhere(n_q, n_k)
    return seen if mask is None else seen & mask


def masked_softmax(xp: Any, s: Any, see: Mask) -> Any:
    """Softmax over the visible keys of each row; hidden keys weigh 0, and a row that sees nothing is 0 throughout.

    s [..., n_q, n_k] may hold anything where `see`, of the same shape, is False.
    """
    if s.shape[-1] == 0:
        return s
    some = see.any(axis=-1, keepdims=True)
    m = xp.max(xp.where(see, s, -math.inf), axis=-1, keepdims=True)
    e = xp.where(see, xp.exp(s - m), 0)
    return e / xp.where(some, xp.sum(e, axis=-1, keepdims=True), 1)


def masked_softmax_vjp(xp: Any, s: Any, see: Mask, g: Any) -> Any:
    """ds = p ⊙ (g − Σ p ⊙ g): zero at hidden keys, and on rows that see nothing."""
    p = masked_softmax(xp, s, see)
    return p * (g - xp.sum(p * g, axis=-1, keepdims=True))
