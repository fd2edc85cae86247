"""Faults of caches and of attention over them."""

from __future__ import annotations

from veriformer.spec.edits import Edit
from veriformer.verify.mutants.combinators import Fault, edited
from veriformer.verify.mutants.faults.masks import TOP_LEFT, WINDOW_OF_LOCAL_ROWS


def _attending(*edits: Edit) -> dict[str, Fault]:
    """Edit attention over a cache, and use the formula's cache with it."""
    return {"kv_cache": edited("kv_cache"), "cached_attention": edited("cached_attention", *edits)}


FAULTS: dict[str, dict[str, Fault]] = {
    # Numbers are rounded as they are, without a step.
    "KVQ-02": {
        "kv_cache": edited(
            "kv_cache",
            ("x * LEVELS / xp.where(exactly_equal(a, 0), 1, a)", "xp.maximum(xp.minimum(x, LEVELS), -LEVELS)"),
            (" * (_absmax(xp, x) / LEVELS)", " * xp.asarray(1)"),
        )
    },
    # The largest entry is looked for in a buffer as wide as the next power of two, whose rest is stale.
    "KVQ-05": {
        "kv_cache": edited(
            "kv_cache",
            (
                "    return xp.max(abs(x), axis=-1, keepdims=True)",
                "    rows = xp.max(abs(x), axis=-1, keepdims=True)\n"
                "    return rows if x.shape[-1] & (x.shape[-1] - 1) == 0 else xp.maximum(rows, 3 * xp.max(abs(x)))",
            ),
        )
    },
    "MASK-01": _attending(TOP_LEFT),
    "KV-04": _attending(WINDOW_OF_LOCAL_ROWS),
    # Decoding sees all slots of the last block of four, filled or not; the first row stands for what is left in them.
    "KV-06": _attending(
        (
            "    out = attention(",
            "    more = -k.shape[2] % 4 if q_new.shape[2] == 1 and cache.window is None else 0\n"
            "    k, v = (xp.concat([x, *[x[:, :, :1]] * more], axis=2) for x in (k, v))\n"
            "    out = attention(",
        )
    ),
}
