"""Faults of causality, windows and masks: who sees whom."""

from __future__ import annotations

from veriformer.spec.edits import Edit
from veriformer.verify.mutants.combinators import Fault, edited

TOP_LEFT: Edit = ('"bottom-right": n_k - n_q', '"bottom-right": 0')
WINDOW_OF_LOCAL_ROWS: Edit = ("j > last - window", "j > counting(n_q)[:, None] - window")
"""Edits of the causal mask, which attention over caches reaches as well."""


def _both(edit: Edit) -> dict[str, Fault]:
    """Edit the rule of causality in the mask and in attention."""
    return {name: edited(name, edit) for name in ("causal_mask", "attention")}


def _seeing(mask: str) -> dict[str, Fault]:
    """Edit attention: combine visibility with this function of the mask [B or 1, H or 1, n_q or 1, n_k]."""
    return {"attention": edited("attention", ("else seen & mask", f"else seen & ({mask})"))}


def _by_heads(mask: str) -> dict[str, Fault]:
    """Edit attention: replace a mask that all heads share by another, [B, H, n_q, n_k]."""
    changed = f"    B, H, n_q, n_k = *q.shape[:3], k.shape[-2]\n    if mask is not None and mask.shape[1] == 1:\n{mask}"
    return {"attention": edited("attention", ("    see = visible(", f"{changed}\n    see = visible("))}


FAULTS: dict[str, dict[str, Fault]] = {
    "MASK-01": _both(TOP_LEFT),
    "KV-01": _both(("j > last - window", "j >= last - window")),
    "KV-04": _both(WINDOW_OF_LOCAL_ROWS),
    # Causality and the mask are added as two planes of the lowest number: twice that is −∞, a row of it NaN.
    "MASK-05": {
        "attention": edited(
            "attention",
            (
                "    return xp.sum(t.p_dropped",
                "    order = visible(q.shape[-2], k.shape[-2], is_causal=is_causal, window=window)\n"
                "    twice = ~order & ~(order if mask is None else mask)\n"
                "    nothing = twice.all(axis=-1, keepdims=True)\n"
                "    return xp.where(nothing, math.nan, 0) + xp.sum(t.p_dropped",
            ),
        )
    },
    "MASK-07": _seeing("np.swapaxes(mask, -1, -2) if mask.shape[-2] == 1 and n_q == n_k else mask"),
    "MASK-08": _seeing("mask | (n_q != n_k)"),
    "MASK-13": _seeing("mask | is_causal"),
    # The mask of one head is read at the offset that it would have if every head had one.
    "MASK-17": _by_heads(
        "        flat = np.broadcast_to(mask, (mask.shape[0], 1, n_q, n_k)).ravel()\n"
        "        mask = flat[np.arange(B * H * n_q * n_k).reshape(B, H, n_q, n_k) % max(1, flat.size)]"
    ),
    # Mask rows come batch first, while the heads are stacked outside the batch.
    "ATT-06": _by_heads(
        "        rows = np.broadcast_to(mask, (B, H, *mask.shape[2:]))\n"
        "        mask = np.swapaxes(rows.reshape(H, B, *mask.shape[2:]), 0, 1)"
    ),
    # Keys up to the end of the block of four that holds the last real one are read.
    "KV-06": {
        "attention": edited(
            "attention",
            (
                "    return seen if mask is None",
                "    if mask is not None:\n"
                "        j = np.arange(n_k)\n"
                "        last = np.max(np.where(mask, j, -1), axis=-1, keepdims=True, initial=-1)\n"
                "        mask = mask | ((j > last) & (j < (last + 4) // 4 * 4))\n"
                "    return seen if mask is None",
            ),
        )
    },
}
