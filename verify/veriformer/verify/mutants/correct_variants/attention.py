"""Other ways to attention."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from veriformer.verify.mutants.records import Variant
from veriformer.verify.mutants.staged_reference.attention import (
    Attention,
    Dense,
    Full,
    Problem,
    cap,
    dot,
    drop,
    given_bias,
    visible,
    weighted,
)
from veriformer.verify.mutants.staged_reference.flash import Block, Flash, State, finite
from veriformer.verify.mutants.staged_reference.scores import maximum
from veriformer.verify.targets.argument_validation import AttentionOptions

_LOG2E = math.log2(math.e)


def _prescaled(t: Problem) -> Tensor:
    return Dense()(t._replace(q=t.q * t.scale, scale=1.0))


def _scale_shared(t: Problem) -> Tensor:
    """q and k each carry the root of the scale, which keeps half-precision scores small."""
    root = abs(t.scale) ** 0.5
    return Dense()(t._replace(q=t.q * math.copysign(root, t.scale), k=t.k * root, scale=1.0))


def _expanded(x: Tensor, H: int) -> Tensor:
    B, G, n, d = x.shape
    return x[:, :, None].expand(B, G, H // G, n, d).reshape(B, H, n, d)


def _indexed(x: Tensor, H: int) -> Tensor:
    return x[:, torch.arange(H) // (H // x.shape[1])]


def _lowest_number(s: Tensor, see: Tensor) -> Tensor:
    """Hidden scores are the lowest number instead of −∞, and rows that see nothing are blanked afterwards."""
    if s.shape[-1] == 0:
        return s
    p = torch.softmax(s.masked_fill(~see, torch.finfo(s.dtype).min), -1)
    return p.masked_fill(~see.any(-1, keepdim=True), 0)


def _in_double(t: Problem) -> Tensor:
    wide = (None if x is None else x.double() for x in (t.q, t.k, t.v, t.bias))
    q, k, v, bias = wide
    return Dense()(t._replace(q=q, k=k, v=v, bias=bias))  # type: ignore[arg-type]


def _normalised_last(t: Problem) -> Tensor:
    """The values are summed with unnormalised weights, and the sum is divided at the end."""
    if t.k.shape[2] == 0:
        return Dense()(t)
    s = cap(dot(t.q, t.k, t.see) * t.scale, t.options.softcap)
    s = (s if t.bias is None else s + t.bias).masked_fill(~t.see, -math.inf)
    e = (s - maximum(s)).exp()
    total = e.sum(-1, keepdim=True)
    e = drop(e, t.options) if t.options.training and t.options.dropout_p else e
    return weighted(e, t.v, t.see) / total.masked_fill(total == 0, 1)


class _SingleKeys(Flash):
    block = 1


class _WideBlocks(Flash):
    block = 5


class _Exp2(Flash):
    """The forward pass in base 2, with the log-sum-exp converted back."""

    def absorb(self, a: State, s: Tensor, spread: Callable[[Tensor], Tensor]) -> State:
        s = s * _LOG2E
        m = torch.maximum(a.m, s.amax(-1, keepdim=True))
        old, p = (a.m - finite(m)).exp2(), (s - finite(m)).exp2()
        return State(m, a.l * old + p.sum(-1, keepdim=True), a.o * old + spread(p))

    def forward(self, t: Problem, keep: Tensor | None, blocks: list[Block]) -> tuple[Tensor, Tensor, Tensor]:
        o, m, lse = super().forward(t, keep, blocks)
        return o, m / _LOG2E, lse - finite(m) + finite(m) / _LOG2E


class _Backwards(Flash):
    """The last block first."""

    def forward(self, t: Problem, keep: Tensor | None, blocks: list[Block]) -> tuple[Tensor, Tensor, Tensor]:
        return super().forward(t, keep, blocks[::-1])


class _SplitKeys(Flash):
    """Two parts of the keys on their own, merged by their log-sum-exps."""

    def forward(self, t: Problem, keep: Tensor | None, blocks: list[Block]) -> tuple[Tensor, Tensor, Tensor]:
        half = len(blocks) // 2
        o1, m1, lse1 = super().forward(t, keep, blocks[:half])
        o2, m2, lse2 = super().forward(t, keep, blocks[half:])
        lse = torch.logaddexp(lse1, lse2)
        return o1 * (lse1 - finite(lse)).exp() + o2 * (lse2 - finite(lse)).exp(), torch.maximum(m1, m2), lse


def _first_bias_taken_off(o: AttentionOptions, full: Full) -> Tensor | None:
    """Each row of the bias less its first entry, as when a slope is read along another diagonal."""
    bias = given_bias(o, full)
    if bias is None or bias.shape[-1] < 2 or not o.is_causal:
        return bias
    return _shifted(bias, bias[..., :1])


def _last_bias_taken_off(o: AttentionOptions, full: Full) -> Tensor | None:
    """At a decoding step the bias is counted from one position further on, which shifts all of its row."""
    bias = given_bias(o, full)
    return bias if bias is None or full[2] != 1 or bias.shape[-1] < 2 else _shifted(bias, bias[..., -1:])


def _shifted(bias: Tensor, by: Tensor) -> Tensor:
    """In fp64: a bias may have a coarser dtype than the scores, in which the difference would be rounded."""
    return bias.double() - finite(by.detach().double())


def _no_mask_needed(o: AttentionOptions, full: Full) -> Tensor:
    """A single query that sees every key needs no causal mask."""
    alone = full[2] == 1 and o.window is None and o.mask is None
    return torch.ones((1, full[3]), dtype=torch.bool) if alone else visible(o, full)


def _attention(identifier: str, title: str, attention: Attention, link: str | None = None) -> Variant:
    return Variant(identifier=f"attention-{identifier}", title=title, kernels={"attention": attention}, link=link)


VARIANTS: tuple[Variant, ...] = (
    _attention("dense", "The base of the mutants: the printed formula", Attention()),
    _attention("flash", "The other base: blocks of three keys and an explicit backward pass", Attention(core=Flash())),
    _attention("flash-single-keys", "Blocks of one key", Attention(core=_SingleKeys())),
    _attention("flash-wide-blocks", "Blocks of five keys", Attention(core=_WideBlocks())),
    _attention("flash-exp2", "The online softmax in base 2", Attention(core=_Exp2())),
    _attention("flash-backwards", "The last block of keys first", Attention(core=_Backwards())),
    _attention("flash-split-keys", "Two parts merged by their log-sum-exps", Attention(core=_SplitKeys())),
    _attention("prescaled", "Queries are scaled before the product", Attention(core=_prescaled)),
    _attention("scale-shared", "Queries and keys each carry the root of the scale", Attention(core=_scale_shared)),
    _attention("heads-expanded", "Key heads are expanded, then folded in", Attention(heads=_expanded)),
    _attention("heads-indexed", "Key heads are gathered by index", Attention(heads=_indexed)),
    _attention("lowest-number", "Hidden scores are the lowest number", Attention(core=Dense(softmax=_lowest_number))),
    _attention("fp64", "Everything in fp64", Attention(core=_in_double)),
    _attention("normalised-last", "The sum over values is divided at the end", Attention(core=_normalised_last)),
    _attention("decode-unmasked", "A single query takes no causal mask", Attention(visible=_no_mask_needed)),
    _attention(
        "bias-other-diagonal",
        "A causal bias is shifted by a constant in each row, as when it is cut from another diagonal of a buffer",
        Attention(bias=_first_bias_taken_off),
        link="https://github.com/lucidrains/x-transformers/issues/153",
    ),
    _attention(
        "bias-decode-shifted",
        "At a decoding step the bias is shifted by a constant, as when the context is counted one longer",
        Attention(bias=_last_bias_taken_off),
        link="https://github.com/vllm-project/vllm/pull/945",
    ),
)
