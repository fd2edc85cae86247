"""Faults of attention's arithmetic: scale, cap, bias, heads, values."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from veriformer.verify.mutants.base.attention import Attention, Dense, Full, Problem, given_bias, softmax
from veriformer.verify.targets.front import AttentionOptions, Kernel


def model_width(q: Tensor, o: AttentionOptions) -> float:
    """1 / √(H d_k), unless a scale is given."""
    return 1 / math.sqrt(q.shape[1] * q.shape[-1]) if o.scale is None else o.scale


def _always_root(q: Tensor, o: AttentionOptions) -> float:
    return 1 / math.sqrt(q.shape[-1])


def _wrong_product(s: Tensor, c: float | None) -> Tensor:
    return s if c is None else s * torch.tanh(s / c)


def _uncapped(s: Tensor, c: float | None) -> Tensor:
    return s


def tiled(x: Tensor, H: int) -> Tensor:
    """Key heads one after the other, and again, in place of each beside its copies."""
    return x.repeat(1, H // x.shape[1], 1, 1)


def _along_sequence(x: Tensor, H: int) -> Tensor:
    B, G, n, d = x.shape
    return x.repeat_interleave(H // G, 2).reshape(B, H, n, d)


def _unpermuted(out: Tensor) -> Tensor:
    B, H, n, d = out.shape
    return out.reshape(B, n, H, d).transpose(1, 2)


def _plain_values(p: Tensor, v: Tensor, see: Tensor) -> Tensor:
    return p @ v


def _none_when_cached(o: AttentionOptions, full: Full) -> Tensor | None:
    return None if full[2] < full[3] else o.bias


def _first_column_when_decoding(o: AttentionOptions, full: Full) -> Tensor | None:
    bias = given_bias(o, full)
    return bias if bias is None or full[2] != 1 else bias[..., :1]


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


KERNELS: dict[str, dict[str, Kernel]] = {
    "ATT-01": {"attention": Attention(scale=model_width)},
    "ATT-05": {"attention": Attention(join=_unpermuted)},
    "FA-13": {"attention": Attention(scale=_always_root)},
    "CAP-02": {"attention": Attention(core=Dense(cap=_wrong_product))},
    "CAP-03": {"attention": Attention(core=Dense(cap=_uncapped))},
    "GQA-01": {"attention": Attention(heads=tiled)},
    "GQA-02": {"attention": Attention(heads=_along_sequence)},
    "MASK-11": {"attention": Attention(core=Dense(weighted=_plain_values))},
    "LIN-03": {"attention": Attention(core=_normaliser_severed)},
    "T5-02": {"attention": Attention(bias=_none_when_cached)},
    "ALIBI-03": {"attention": Attention(bias=_first_column_when_decoding)},
}
