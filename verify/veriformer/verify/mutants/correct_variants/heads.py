"""Other ways to heads, linear attention and the block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.spec.edits import Edit
from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.correct_variants.networks import ACTIVATIONS
from veriformer.verify.mutants.records import Variant, variant
from veriformer.verify.targets.argument_validation import RawOp


def _from_weights(compute: Callable[..., Tensor]) -> RawOp:
    """Return multi-head attention by ``compute(X, C, see, weights, H, groups)``.

    X [B, n_q, d] and C [B, n_k, d_c] are tokens and context without padding, widened, as the four weights are; see
    [B, n_q, n_k] is who sees whom.
    """

    def multi_head_attention(
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
        X, C = widen(x), widen(x if context is None else context)
        real = torch.ones(C.shape[:2], dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        if context is None:
            X = X.masked_fill(~real[..., None] & ~X.isfinite(), 0)
        n_q, n_k, H = X.shape[1], C.shape[1], int(num_heads)
        order = torch.ones(n_q, n_k, dtype=torch.bool)
        see = real[:, None, :] & (order.tril(n_k - n_q) if is_causal else order)
        weights, groups = [widen(w) for w in (w_q, w_k, w_v, w_o)], H if num_kv_heads is None else int(num_kv_heads)
        return compute(X, C.masked_fill(~real[..., None], 0), see, weights, H, groups).to(x.dtype)

    return multi_head_attention


def _softmax(s: Tensor, see: Tensor) -> Tensor:
    s = s.masked_fill(~see, -torch.inf)
    e = (s - s.amax(-1, keepdim=True).clamp(min=torch.finfo(s.dtype).min).detach()).exp()
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1, total)


@_from_weights
def _head_by_head(X: Tensor, C: Tensor, see: Tensor, weights: Sequence[Tensor], H: int, groups: int) -> Tensor:
    """Compute Σ_h head_h W_o^h, each head's weights sliced."""
    out = torch.zeros(*X.shape[:2], weights[3].shape[1], dtype=X.dtype)
    cut = [w.chunk(n, d) for w, n, d in zip(weights, (H, groups, groups, H), (1, 1, 1, 0), strict=True)]
    for h in range(H):
        g = h // (H // groups)
        q, k, v = X @ cut[0][h], C @ cut[1][g], C @ cut[2][g]
        out = out + _softmax(q @ k.mT / q.shape[-1] ** 0.5, see) @ v @ cut[3][h]
    return out


@_from_weights
def _bilinear(X: Tensor, C: Tensor, see: Tensor, weights: Sequence[Tensor], H: int, groups: int) -> Tensor:
    """Compute scores X (W_q W_kᵀ) Cᵀ and values through W_v W_o: neither keys nor values are formed."""
    w_q, w_k, w_v, w_o = weights
    d_k = w_q.shape[1] // H
    q, k, v = (w.reshape(w.shape[0], n, w.shape[1] // n) for w, n in ((w_q, H), (w_k, groups), (w_v, groups)))
    k, v = (w.repeat_interleave(H // groups, 1) for w in (k, v))
    o = w_o.reshape(H, w_o.shape[0] // H, w_o.shape[1])
    both = torch.einsum("ahc,bhc->hab", q, k)
    s = torch.einsum("bia,hac,bjc->bhij", X, both, C) / d_k**0.5
    through = torch.einsum("chd,hde->hce", v, o)
    p = _softmax(s, see[:, None])
    return torch.einsum("bhij,bjc,hce->bie", p, C, through)


def _features(x: Tensor) -> Tensor:
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _sums(q: Tensor, k: Tensor, v: Tensor, *, feature_map: str, is_causal: bool) -> Tensor:
    """Compute S and z for every prefix, by cumulative sums over the keys."""
    phi_q, phi_k, wide = _features(widen(q)), _features(widen(k)), widen(v)
    n_q, n_k = q.shape[2], k.shape[2]
    if n_k == 0:
        return q @ k.mT @ v
    S, z = (phi_k[..., None] * wide[..., None, :]).cumsum(2), phi_k.cumsum(2)
    last = torch.arange(n_q) + n_k - n_q if is_causal else torch.full((n_q,), n_k - 1)
    S, z = S[:, :, last.clamp(min=0)], z[:, :, last.clamp(min=0)]
    out = torch.einsum("bhid,bhidv->bhiv", phi_q, S) / (phi_q * z).sum(-1, keepdim=True)
    return out.masked_fill((last < 0)[:, None], 0).to(q.dtype)


def _recurrent(q: Tensor, k: Tensor, v: Tensor, *, feature_map: str, is_causal: bool) -> Any:
    """Compute linear attention by recurrence over tokens; of all tokens at once where it is not causal."""
    phi_q, phi_k, wide = _features(widen(q)), _features(widen(k)), widen(v)
    n_q, n_k = q.shape[2], k.shape[2]
    if n_k == 0 or not is_causal:
        return kernel("linear_attention")(q, k, v, feature_map=feature_map, is_causal=is_causal)
    S, z = torch.zeros_like(phi_k[:, :, 0, :, None] * wide[:, :, 0, None]), torch.zeros_like(phi_k[:, :, 0])
    rows, j = [], 0
    for i in range(n_q):
        while j <= i + n_k - n_q:
            S, z, j = S + phi_k[:, :, j, :, None] * wide[:, :, j, None], z + phi_k[:, :, j], j + 1
        total = (phi_q[:, :, i] * z).sum(-1, keepdim=True)
        rows.append((phi_q[:, :, i, None] @ S)[:, :, 0] / torch.where(total == 0, 1, total))
    return torch.stack(rows, 2).to(q.dtype)


@_from_weights
def _library(X: Tensor, C: Tensor, see: Tensor, weights: Sequence[Tensor], H: int, groups: int) -> Tensor:
    """Call PyTorch's attention; rows of queries without a visible key become zero."""
    w_q, w_k, w_v, w_o = weights
    empty = ~see[:, None].any(-1, keepdim=True)
    products = (X @ w_q, H), (C @ w_k, groups), (C @ w_v, groups)
    q, k, v = (x.reshape(*x.shape[:2], n, x.shape[2] // n).transpose(1, 2) for x, n in products)
    o = F.scaled_dot_product_attention(q, k, v, see[:, None] | empty, enable_gqa=groups != H).masked_fill(empty, 0)
    return o.transpose(1, 2).flatten(2) @ w_o


def _block(heads: RawOp) -> RawOp:
    """Return the block with these heads, PyTorch's norms and its linear layers."""

    def block(
        x: Tensor, params: Mapping[str, Tensor], *, norm: str, activation: str, eps: float, **options: Any
    ) -> Tensor:
        p = {name: widen(value) for name, value in params.items()}
        sigma = ACTIVATIONS[activation]

        def attend(h: Tensor) -> Tensor:
            out: Tensor = heads(h, p["w_q"], p["w_k"], p["w_v"], p["w_o"], context=None, **options)
            return out

        def transform(h: Tensor) -> Tensor:
            return F.linear(sigma(F.linear(h, p["w1"].mT, p["b1"])), p["w2"].mT, p["b2"])

        h = widen(x)
        for place, branch in (("norm1", attend), ("norm2", transform)):
            weight, bias = p[f"{place}_weight"], p[f"{place}_bias"]
            seen = F.layer_norm(h, h.shape[-1:], weight, bias, float(eps)) if norm == "pre" else h
            h = h + branch(seen)
            h = h if norm == "pre" else F.layer_norm(h, h.shape[-1:], weight, bias, float(eps))
        return h.to(x.dtype)

    return block


_TOKEN_BY_TOKEN: Edit = (
    "        return x + branch.value(layer_norm(xp, x, weight, bias, eps=eps))",
    "        tokens = [layer_norm(xp, x[:, i : i + 1], weight, bias, eps=eps) for i in range(x.shape[1])]\n"
    "        return x + branch.value(xp.concat(tokens, axis=1))",
)
"""Edit of the block: the norm of each token by itself."""

_HEADS = ("multi_head_attention", "linear_attention", "transformer_block")

VARIANTS: tuple[Variant, ...] = (
    variant(
        "heads-base",
        "The bases of the mutants of heads, linear attention and the block",
        {name: kernel(name) for name in _HEADS},
    ),
    variant(
        "multi-head-library",
        "Multi-head attention over PyTorch's attention",
        multi_head_attention=_library,
        transformer_block=_block(_library),
    ),
    variant(
        "multi-head-sum",
        "Multi-head attention as a sum over heads",
        multi_head_attention=_head_by_head,
        transformer_block=_block(_head_by_head),
    ),
    variant(
        "multi-head-bilinear",
        "Multi-head attention without keys and values: products of weights first",
        multi_head_attention=_bilinear,
    ),
    variant(
        "heads-fp64",
        "Heads, linear attention and the block in fp64 throughout",
        {name: kernel(name, dtype=torch.float64) for name in _HEADS},
    ),
    variant(
        "linear-elu",
        "Linear attention with elu(x), and then 1 added",
        linear_attention=kernel("linear_attention", ("FEATURE_MAPS[feature_map]", 'FEATURE_MAPS["elu, +1"]')),
    ),
    variant("linear-sums", "Linear attention by cumulative sums", linear_attention=_sums),
    variant("linear-recurrent", "Linear attention token by token", linear_attention=_recurrent),
    variant(
        "linear-weights",
        "Linear attention with normalised weights",
        linear_attention=kernel("linear_attention", ("a / sums", "a * (1 / sums)")),
    ),
    variant(
        "block-token-by-token",
        "The block with each token normalised by itself",
        transformer_block=kernel("transformer_block", _TOKEN_BY_TOKEN),
    ),
)
