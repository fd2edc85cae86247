"""Multi-head attention and the block, by stages; gradients by autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.mutants.formulas import FormulaKernel
from veriformer.verify.mutants.staged_reference.attention import Attention
from veriformer.verify.mutants.staged_reference.scores import widen
from veriformer.verify.targets.argument_validation import AttentionOptions, RawOp


def split(x: Tensor, heads: int) -> Tensor:
    """[B, n, H·d] to [B, H, n, d]."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)


def join(x: Tensor) -> Tensor:
    """[B, H, n, d] to [B, n, H·d]."""
    B, H, n, d = x.shape
    return x.transpose(1, 2).reshape(B, n, H * d)


def hide_keys(real: Tensor | None, alone: bool) -> Tensor | None:
    """[B, n_k] as a mask [B, 1, 1, n_k]; alone: whether the tokens are their own context."""
    return None if real is None else real[:, None, None, :]


@dataclass(frozen=True)
class MultiHead:
    """Concat(Attention(X W_q^h, C W_k^g, C W_v^g)) W_o."""

    attend: Callable[[Tensor, Tensor, Tensor, AttentionOptions], Tensor] = field(default_factory=Attention)
    join: Callable[[Tensor], Tensor] = join
    mask: Callable[[Tensor | None, bool], Tensor | None] = hide_keys

    def __call__(
        self,
        x: Tensor,
        w_q: Tensor,
        w_k: Tensor,
        w_v: Tensor,
        w_o: Tensor,
        *,
        num_heads: int,
        num_kv_heads: int | None,
        context: Tensor | None,
        attention_mask: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        """Return the contract's operation."""
        real = None if attention_mask is None else attention_mask.bool()
        groups = num_heads if num_kv_heads is None else num_kv_heads
        X, C = (widen(x), widen(x if context is None else context))
        if real is not None:
            X = X.masked_fill(~real[..., None] & ~X.isfinite(), 0) if context is None else X
            C = C.masked_fill(~real[..., None], 0)
        q, k, v = (split(y @ widen(w), int(h)) for y, w, h in ((X, w_q, num_heads), (C, w_k, groups), (C, w_v, groups)))
        o = self.attend(q, k, v, AttentionOptions(mask=self.mask(real, context is None), is_causal=is_causal))
        return (self.join(o) @ widen(w_o)).to(x.dtype)


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": F.gelu,
}


def pre(x: Tensor, norm: Callable[[Tensor], Tensor], branch: Callable[[Tensor], Tensor]) -> Tensor:
    """x + branch(norm(x))."""
    return x + branch(norm(x))


def post(
    x: Tensor,
    norms: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]],
    branches: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]],
) -> Tensor:
    """norm(h + branch(h)), twice."""
    for norm, branch in zip(norms, branches, strict=True):
        x = norm(x + branch(x))
    return x


@dataclass(frozen=True)
class Block:
    """The Transformer block."""

    heads: RawOp = field(default_factory=MultiHead)
    norm: RawOp = field(default_factory=lambda: FormulaKernel("layer_norm"))
    pre: Callable[..., Tensor] = pre
    post: Callable[..., Tensor] = post

    def __call__(
        self, x: Tensor, params: Mapping[str, Tensor], *, norm: str, activation: str, eps: float, **options: Any
    ) -> Tensor:
        """Return the contract's operation."""
        p = {name: widen(value) for name, value in params.items()}

        def attend(h: Tensor) -> Tensor:
            out: Tensor = self.heads(h, p["w_q"], p["w_k"], p["w_v"], p["w_o"], context=None, **options)
            return out

        def transform(h: Tensor) -> Tensor:
            return ACTIVATIONS[activation](h @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

        def normed(place: str) -> Callable[[Tensor], Tensor]:
            return lambda h: self.norm(h, p[f"{place}_weight"], p[f"{place}_bias"], eps)

        norms, branches = (normed("norm1"), normed("norm2")), (attend, transform)
        if norm == "post":
            return self.post(widen(x), norms, branches).to(x.dtype)
        h = widen(x)
        for one, branch in zip(norms, branches, strict=True):
            h = self.pre(h, one, branch)
        return h.to(x.dtype)
