"""Who may see whom: causal masks, windows and boolean masks (equation 24a)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def causal_mask(n_q: int, n_k: int, *, window: int | None = None, alignment: str = "bottom-right") -> NDArray[np.bool_]:
    """Boolean [n_q, n_k], True where query i may see key j: j ≤ i + n_k − n_q, and j > i + n_k − n_q − window.

    The last query sees the last key ("bottom-right"); "top-left" drops the offset n_k − n_q.
    """
    offset = {"bottom-right": n_k - n_q, "top-left": 0}[alignment]
    last = np.arange(n_q)[:, None] + offset
    j = np.arange(n_k)[None, :]
    seen = j <= last
    return seen if window is None else seen & (j > last - window)


def visible(
    n_q: int,
    n_k: int,
    *,
    mask: NDArray[np.bool_] | None = None,
    is_causal: bool = False,
    window: int | None = None,
    alignment: str = "bottom-right",
) -> NDArray[np.bool_]:
    """The pairs that mask, causality and window all admit; rank 2 to 4, aligned right with [B, H, n_q, n_k]."""
    if window is not None and not is_causal:
        raise ValueError("window: expected is_causal=True with it, got is_causal=False")
    seen = causal_mask(n_q, n_k, window=window, alignment=alignment) if is_causal else np.ones((n_q, n_k), dtype=bool)
    return seen if mask is None else seen & mask
