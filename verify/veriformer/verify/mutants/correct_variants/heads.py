"""Other ways to heads, linear attention and the block."""

from __future__ import annotations

from collections.abc import Mapping
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


def _blank(x: Tensor, context: Tensor | None, attention_mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens and context without padding, widened, and which of the context is real [B, n_k]."""
    X, C = widen(x), widen(x if context is None else context)
    real = torch.ones(C.shape[:2], dtype=torch.bool) if attention_mask is None else attention_mask.bool()
    if context is None:
        X = X.masked_fill(~real[..., None] & ~X.isfinite(), 0)
    return X, C.masked_fill(~real[..., None], 0), real


def _seen(real: Tensor, n_q: int, is_causal: bool) -> Tensor:
    n_k = real.shape[1]
    order = torch.ones(n_q, n_k, dtype=torch.bool)
    return real[:, None, :] & (order.tril(n_k - n_q) if is_causal else order)


def _softmax(s: Tensor, see: Tensor) -> Tensor:
    s = s.masked_fill(~see, -torch.inf)
    e = (s - s.amax(-1, keepdim=True).clamp(min=torch.finfo(s.dtype).min).detach()).exp()
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1, total)


def _head_by_head(
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
    """Σ_h head_h W_o^h, with each head's weights cut out."""
    X, C, real = _blank(x, context, attention_mask)
    see, H = _seen(real, x.shape[1], is_causal), int(num_heads)
    groups = H if num_kv_heads is None else int(num_kv_heads)
    out = torch.zeros(*x.shape[:2], w_o.shape[1], dtype=X.dtype)
    cut = [widen(w).chunk(n, d) for w, n, d in ((w_q, H, 1), (w_k, groups, 1), (w_v, groups, 1), (w_o, H, 0))]
    for h in range(H):
        g = h // (H // groups)
        q, k, v = X @ cut[0][h], C @ cut[1][g], C @ cut[2][g]
        out = out + _softmax(q @ k.mT / q.shape[-1] ** 0.5, see) @ v @ cut[3][h]
    return out.to(x.dtype)


def _bilinear(
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
    """Scores are X (W_q W_kᵀ) Cᵀ, values go through W_v W_o: no keys and no values are formed."""
    X, C, real = _blank(x, context, attention_mask)
    H, see = int(num_heads), _seen(real, x.shape[1], is_causal)
    groups = H if num_kv_heads is None else int(num_kv_heads)
    repeat = H // groups
    d_k = w_q.shape[1] // H
    q, k = (widen(w).reshape(w.shape[0], n, w.shape[1] // n) for w, n in ((w_q, H), (w_k, groups)))
    v, o = (
        widen(w_v).reshape(w_v.shape[0], groups, w_v.shape[1] // groups),
        widen(w_o).reshape(H, w_o.shape[0] // H, w_o.shape[1]),
    )
    k, v = (w.repeat_interleave(repeat, 1) for w in (k, v))
    both = torch.einsum("ahc,bhc->hab", q, k)
    s = torch.einsum("bia,hac,bjc->bhij", X, both, C) / d_k**0.5
    through = torch.einsum("chd,hde->hce", v, o)
    p = _softmax(s, see[:, None])
    return torch.einsum("bhij,bjc,hce->bie", p, C, through).to(x.dtype)


def _features(x: Tensor) -> Tensor:
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _sums(q: Tensor, k: Tensor, v: Tensor, *, feature_map: str, is_causal: bool) -> Tensor:
    """S and z for every prefix, by cumulative sums over the keys."""
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


def _library(
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
    """PyTorch's attention, with rows that see nothing set to zero."""
    X, C, real = _blank(x, context, attention_mask)
    see, H = _seen(real, x.shape[1], is_causal)[:, None], int(num_heads)
    groups = H if num_kv_heads is None else int(num_kv_heads)
    empty = ~see.any(-1, keepdim=True)
    products = (X @ widen(w_q), H), (C @ widen(w_k), groups), (C @ widen(w_v), groups)
    q, k, v = (x.reshape(*x.shape[:2], n, x.shape[2] // n).transpose(1, 2) for x, n in products)
    o = F.scaled_dot_product_attention(q, k, v, see | empty, enable_gqa=groups != H).masked_fill(empty, 0)
    return (o.transpose(1, 2).flatten(2) @ widen(w_o)).to(x.dtype)


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
