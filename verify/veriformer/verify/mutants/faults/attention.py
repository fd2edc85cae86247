"""Faults of attention's arithmetic: scale, cap, bias, heads, values."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, by_name, change_result, edited, without


def _model_width(*, q: Tensor, scale: float | None, **_: Any) -> dict[str, Any]:
    return {"scale": 1 / math.sqrt(q.shape[1] * q.shape[-1]) if scale is None else scale}


def tiled_heads(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    """Repeat key heads as 0, 1, …, 0, 1, …, in place of 0, 0, …, 1, 1, …."""
    return {name: x.repeat(1, q.shape[1] // x.shape[1], 1, 1) for name, x in (("k", k), ("v", v))}


def _along_sequence(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    H, G = q.shape[1], k.shape[1]
    return {
        name: x.repeat_interleave(H // G, 2).reshape(x.shape[0], H, *x.shape[2:]) for name, x in (("k", k), ("v", v))
    }


def _unpermuted(out: Tensor) -> Tensor:
    B, H, n, d = out.shape
    return out.reshape(B, n, H, d).transpose(1, 2)


def _none_when_cached(*, q: Tensor, k: Tensor, bias: Tensor | None, **_: Any) -> dict[str, Any]:
    return {"bias": None if q.shape[2] < k.shape[2] else bias}


def _first_column_when_decoding(*, q: Tensor, bias: Tensor | None, **_: Any) -> dict[str, Any]:
    return {"bias": bias if bias is None or q.shape[2] != 1 else bias[..., :1]}


FAULTS: dict[str, dict[str, Fault]] = {
    "ATT-01": {"attention": by_name(_model_width)},
    "ATT-05": {"attention": change_result(_unpermuted)},
    "FA-13": {"attention": without("scale")},
    "CAP-02": {"attention": edited("attention", ("tanh * softcap", "s * tanh"))},
    "CAP-03": {"attention": without("softcap")},
    "GQA-01": {"attention": by_name(tiled_heads)},
    "GQA-02": {"attention": by_name(_along_sequence)},
    "MASK-11": {
        "attention": edited(
            "attention",
            ("xp.where(see[..., None], v[..., None, :, :], 0)", "v[..., None, :, :]"),
            ("xp.where(seen, xp.repeat(v, repeats, axis=1), 0)", "xp.repeat(v, repeats, axis=1)"),
        )
    },
    # The keys of the normaliser carry no gradient.
    "LIN-03": {
        "attention": edited(
            "attention", ("xp.where(some, xp.sum(e, axis", "xp.where(some, xp.sum(xp.constant(e), axis")
        )
    },
    "T5-02": {"attention": by_name(_none_when_cached)},
    "ALIBI-03": {"attention": by_name(_first_column_when_decoding)},
}
