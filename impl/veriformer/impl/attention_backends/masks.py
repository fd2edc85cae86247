"""Visibility of keys to queries."""

import torch
from torch import Tensor

from veriformer.impl import checks


def causal_mask(n_q: int, n_k: int, *, window: int | None = None) -> Tensor:
    r"""Build the mask of causal attention, aligned at the bottom right.

    $$M_{ij} = \mathrm{True} \iff i + n_k - n_q - w < j \le i + n_k - n_q$$

    so the last query sees the last key, and with `window=w` each query sees its `w` latest keys at most.

    Returns a bool tensor `[n_q, n_k]` on the CPU, `True` where attention is allowed. Raises `TypeError` for sizes that
    are not integers, `ValueError` for negative ones and for `window < 1`. Equation 24a.
    """
    n_q, n_k = checks.integer("n_q", n_q, minimum=0), checks.integer("n_k", n_k, minimum=0)
    if window is not None:
        checks.integer("window", window, minimum=1)
    return band((0, n_q), (0, n_k), n_k - n_q, window)


def band(
    rows: tuple[int, int], cols: tuple[int, int], shift: int, window: int | None, device: torch.device | None = None
) -> Tensor:
    """Return the tile `rows × cols` of a causal mask whose query `i` stands at position `i + shift`."""
    i = torch.arange(*rows, device=device)[:, None] + shift
    j = torch.arange(*cols, device=device)
    seen = j <= i
    return seen if window is None else seen & (j > i - window)
