"""Faults of attention's arithmetic: scale, cap, bias, heads, values."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, by_name, changed, replaced_by, without
from veriformer.verify.mutants.staged_reference.attention import Attention, Dense, Problem, softmax


def _model_width(*, q: Tensor, scale: float | None, **_: Any) -> dict[str, Any]:
    return {"scale": 1 / math.sqrt(q.shape[1] * q.shape[-1]) if scale is None else scale}


def _wrong_product(s: Tensor, c: float | None) -> Tensor:
    return s if c is None else s * torch.tanh(s / c)


def tiled_heads(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    """Key heads one after the other, and again, in place of each beside its copies."""
    return {name: x.repeat(1, q.shape[1] // x.shape[1], 1, 1) for name, x in (("k", k), ("v", v))}


def _along_sequence(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    H, G = q.shape[1], k.shape[1]
    return {
        name: x.repeat_interleave(H // G, 2).reshape(x.shape[0], H, *x.shape[2:]) for name, x in (("k", k), ("v", v))
    }


def _unpermuted(out: Tensor) -> Tensor:
    B, H, n, d = out.shape
    return out.reshape(B, n, H, d).transpose(1, 2)


def _plain_values(p: Tensor, v: Tensor, see: Tensor) -> Tensor:
    return p @ v


def _none_when_cached(*, q: Tensor, k: Tensor, bias: Tensor | None, **_: Any) -> dict[str, Any]:
    return {"bias": None if q.shape[2] < k.shape[2] else bias}


def _first_column_when_decoding(*, q: Tensor, bias: Tensor | None, **_: Any) -> dict[str, Any]:
    return {"bias": bias if bias is None or q.shape[2] != 1 else bias[..., :1]}


def _normaliser_severed(t: Problem) -> Tensor:
    """The keys of the normaliser carry no gradient."""

    def frozen(s: Tensor, see: Tensor) -> Tensor:
        p = softmax(s, see)
        if s.shape[-1] == 0:
            return p
        s = s.masked_fill(~see, -math.inf)
        lse = torch.logsumexp(s.detach(), -1, keepdim=True)
        return torch.where(see, (s - lse.masked_fill(lse.isinf(), 0)).exp(), 0)

    return Dense(softmax=frozen)(t)


FAULTS: dict[str, dict[str, Fault]] = {
    "ATT-01": {"attention": by_name(_model_width)},
    "ATT-05": {"attention": changed(_unpermuted)},
    "FA-13": {"attention": without("scale")},
    "CAP-02": {"attention": replaced_by(Attention(core=Dense(cap=_wrong_product)))},
    "CAP-03": {"attention": without("softcap")},
    "GQA-01": {"attention": by_name(tiled_heads)},
    "GQA-02": {"attention": by_name(_along_sequence)},
    "MASK-11": {"attention": replaced_by(Attention(core=Dense(weighted=_plain_values)))},
    "LIN-03": {"attention": replaced_by(Attention(core=_normaliser_severed))},
    "T5-02": {"attention": by_name(_none_when_cached)},
    "ALIBI-03": {"attention": by_name(_first_column_when_decoding)},
}
