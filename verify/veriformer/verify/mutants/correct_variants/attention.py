"""Other ways to attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.spec.edits import Edit
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.records import Variant, variant
from veriformer.verify.mutants.staged_reference.flash import Block, Flash, Problem, State, finite
from veriformer.verify.targets.argument_validation import RawOp

_LOG2E = math.log2(math.e)

_USED = "    q, k, v = _used(xp, q, k, v, see)"
_PRESCALED: Edit = (_USED, f"{_USED}\n    q, scale = _scaled(xp, q, q, scale), 1.0")

_SCALE_SHARED: Edit = (
    _USED,
    f"{_USED}\n"
    "    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale\n"
    "    root = abs(scale) ** 0.5\n"
    "    q, k, scale = q * math.copysign(root, scale), k * root, 1.0",
)
"""Edit of attention: q and k each carry the root of the scale, which keeps half-precision scores small."""

_LOWEST_NUMBER: tuple[Edit, ...] = (
    ("    m = xp.max(", f"    s = xp.where(see, s, {torch.finfo(torch.float32).min})\n    m = xp.max("),
    ("e = xp.exp(xp.where(see, s - m, -math.inf))", "e = xp.exp(xp.where(some, s - m, 0))"),
    (
        "return e / xp.where(some, xp.sum(e, axis=-1, keepdims=True), 1)",
        "return xp.where(some, e / xp.sum(e, axis=-1, keepdims=True), 0)",
    ),
)
"""Edits of attention: hidden scores are the lowest number instead of −∞, and rows that see nothing are blanked."""

_NORMALISED_LAST: tuple[Edit, ...] = (
    ("return e / xp.where(some, xp.sum(e, axis=-1, keepdims=True), 1)", "return e"),
    (
        "    return xp.sum(t.p_dropped[..., None] * t.v, axis=-2)",
        "    total = xp.sum(t.p, axis=-1, keepdims=True)\n"
        "    total = xp.where(exactly_equal(total, 0), 1, total)\n"
        "    return xp.sum(t.p_dropped[..., None] * t.v, axis=-2) / total",
    ),
)
"""Edits of attention: the values are summed with unnormalised weights, and the sum is divided at the end."""

_UNMASKED_DECODING: Edit = ("if is_causal else everywhere", "if is_causal and (n_q > 1 or window) else everywhere")
"""Edit of attention: a single query that sees every key needs no causal mask."""


def _shifted(when: str, by: str) -> Edit:
    """Edit of attention: each row of the bias less one of its entries, where it has others."""
    return (
        "    see = visible(",
        f"    if bias is not None and bias.shape[-1] > 1 and {when}:\n"
        f"        by = xp.constant(bias[..., {by}])\n"
        "        bias = bias - xp.where(exactly_equal(by, -math.inf), 0, by)\n"
        "    see = visible(",
    )


def _with_heads(copies: Callable[[Tensor, int], Tensor]) -> RawOp:
    """Return attention whose key heads are copied for every query head like this."""
    attend = kernel("attention")
    return lambda q, k, v, o: attend(q, copies(k, q.shape[1]), copies(v, q.shape[1]), o)


def _expanded(x: Tensor, H: int) -> Tensor:
    B, G, n, d = x.shape
    return x[:, :, None].expand(B, G, H // G, n, d).reshape(B, H, n, d)


def _indexed(x: Tensor, H: int) -> Tensor:
    return x[:, torch.arange(H) // (H // x.shape[1])]


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


def _attention(identifier: str, title: str, attention: RawOp, link: str | None = None) -> Variant:
    return variant(f"attention-{identifier}", title, link=link, attention=attention)


def _edited(identifier: str, title: str, *edits: Edit, link: str | None = None, **settings: Any) -> Variant:
    return _attention(identifier, title, kernel("attention", *edits, **settings), link)


VARIANTS: tuple[Variant, ...] = (
    _edited("dense", "The base of the mutants: the printed formula"),
    _attention("flash", "The other base: blocks of three keys and an explicit backward pass", Flash()),
    _attention("flash-single-keys", "Blocks of one key", _SingleKeys()),
    _attention("flash-wide-blocks", "Blocks of five keys", _WideBlocks()),
    _attention("flash-exp2", "The online softmax in base 2", _Exp2()),
    _attention("flash-backwards", "The last block of keys first", _Backwards()),
    _attention("flash-split-keys", "Two parts merged by their log-sum-exps", _SplitKeys()),
    _edited("prescaled", "Queries are scaled before the product", _PRESCALED),
    _edited("scale-shared", "Queries and keys each carry the root of the scale", _SCALE_SHARED),
    _attention("heads-expanded", "Key heads are expanded, then folded in", _with_heads(_expanded)),
    _attention("heads-indexed", "Key heads are gathered by index", _with_heads(_indexed)),
    _edited("lowest-number", "Hidden scores are the lowest number", *_LOWEST_NUMBER),
    _edited("fp64", "Everything in fp64", dtype=torch.float64),
    _edited("normalised-last", "The sum over values is divided at the end", *_NORMALISED_LAST),
    _edited("decode-unmasked", "A single query takes no causal mask", _UNMASKED_DECODING),
    _edited(
        "bias-other-diagonal",
        "A causal bias is shifted by a constant in each row, as when it is cut from another diagonal of a buffer",
        _shifted("is_causal", ":1"),
        link="https://github.com/lucidrains/x-transformers/issues/153",
    ),
    _edited(
        "bias-decode-shifted",
        "At a decoding step the bias is shifted by a constant, as when the context is counted one longer",
        _shifted("q.shape[-2] == 1", "-1:"),
        link="https://github.com/vllm-project/vllm/pull/945",
    ),
)
