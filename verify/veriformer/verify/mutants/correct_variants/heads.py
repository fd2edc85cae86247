"""Other ways to heads, linear attention and the block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.mutants.formulas import FormulaKernel
from veriformer.verify.mutants.records import Variant
from veriformer.verify.mutants.staged_reference.heads import Block, MultiHead
from veriformer.verify.mutants.staged_reference.scores import widen
from veriformer.verify.targets.argument_validation import AttentionOptions, RawOp


def _library(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """PyTorch's attention, with rows that see nothing set to zero."""
    see = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    see = see.tril(k.shape[2] - q.shape[2]) if o.is_causal else see
    see = (see if o.mask is None else see & o.mask).expand(q.shape[0], 1, *see.shape)
    empty = ~see.any(-1, keepdim=True)
    out = F.scaled_dot_product_attention(q, k, v, see | empty, enable_gqa=q.shape[1] != k.shape[1])
    return out.masked_fill(empty, 0)


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


def _widest(kernel: RawOp) -> RawOp:
    """Everything in fp64."""

    def double(x: Any) -> Any:
        if isinstance(x, Tensor):
            return x.double() if x.is_floating_point() else x
        return {name: double(value) for name, value in x.items()} if isinstance(x, Mapping) else x

    def widest(*arguments: Any, **options: Any) -> Tensor:
        out: Tensor = kernel(*map(double, arguments), **{name: double(value) for name, value in options.items()})
        return out.to(arguments[0].dtype)

    return widest


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


def _recurrent(q: Tensor, k: Tensor, v: Tensor, *, feature_map: str, is_causal: bool) -> Tensor:
    """Compute linear attention by recurrence over tokens; of all tokens at once where it is not causal."""
    phi_q, phi_k, wide = _features(widen(q)), _features(widen(k)), widen(v)
    n_q, n_k = q.shape[2], k.shape[2]
    if n_k == 0 or not is_causal:
        return FormulaKernel("linear_attention")(q, k, v, feature_map=feature_map, is_causal=is_causal)
    S, z = torch.zeros_like(phi_k[:, :, 0, :, None] * wide[:, :, 0, None]), torch.zeros_like(phi_k[:, :, 0])
    rows, j = [], 0
    for i in range(n_q):
        while j <= i + n_k - n_q:
            S, z, j = S + phi_k[:, :, j, :, None] * wide[:, :, j, None], z + phi_k[:, :, j], j + 1
        total = (phi_q[:, :, i] * z).sum(-1, keepdim=True)
        rows.append((phi_q[:, :, i, None] @ S)[:, :, 0] / torch.where(total == 0, 1, total))
    return torch.stack(rows, 2).to(q.dtype)


def _library_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, float(eps))


def _branch_first(x: Tensor, norm: Callable[[Tensor], Tensor], branch: Callable[[Tensor], Tensor]) -> Tensor:
    return branch(norm(x)).add(x)


def _token_by_token(x: Tensor, norm: Callable[[Tensor], Tensor], branch: Callable[[Tensor], Tensor]) -> Tensor:
    """The norm of each token by itself."""
    return x + branch(torch.cat([norm(token) for token in torch.tensor_split(x, x.shape[1], 1)], 1))


VARIANTS: tuple[Variant, ...] = (
    Variant(
        identifier="heads-base",
        title="The bases of the mutants of heads, linear attention and the block",
        kernels={
            "multi_head_attention": MultiHead(),
            "linear_attention": FormulaKernel("linear_attention"),
            "transformer_block": Block(),
        },
    ),
    Variant(
        identifier="multi-head-library",
        title="Multi-head attention over PyTorch's attention",
        kernels={
            "multi_head_attention": MultiHead(attend=_library),
            "transformer_block": Block(heads=MultiHead(attend=_library), norm=_library_norm),
        },
    ),
    Variant(
        identifier="multi-head-sum",
        title="Multi-head attention as a sum over heads",
        kernels={"multi_head_attention": _head_by_head, "transformer_block": Block(heads=_head_by_head)},
    ),
    Variant(
        identifier="multi-head-bilinear",
        title="Multi-head attention without keys and values: products of weights first",
        kernels={"multi_head_attention": _bilinear},
    ),
    Variant(
        identifier="heads-fp64",
        title="Heads, linear attention and the block in fp64 throughout",
        kernels={
            "multi_head_attention": _widest(MultiHead()),
            "linear_attention": FormulaKernel("linear_attention", dtype=torch.float64),
            "transformer_block": _widest(Block()),
        },
    ),
    Variant(
        identifier="linear-elu",
        title="Linear attention with elu(x), and then 1 added",
        kernels={
            "linear_attention": FormulaKernel(
                "linear_attention", (("FEATURE_MAPS[feature_map]", 'FEATURE_MAPS["elu, +1"]'),)
            )
        },
    ),
    Variant(identifier="linear-sums", title="Linear attention by cumulative sums", kernels={"linear_attention": _sums}),
    Variant(
        identifier="linear-recurrent", title="Linear attention token by token", kernels={"linear_attention": _recurrent}
    ),
    Variant(
        identifier="linear-weights",
        title="Linear attention with normalised weights, the block with its branch first",
        kernels={
            "linear_attention": FormulaKernel("linear_attention", (("a / sums", "a * (1 / sums)"),)),
            "transformer_block": Block(pre=_branch_first),
        },
    ),
    Variant(
        identifier="block-token-by-token",
        title="The block with each token normalised by itself",
        kernels={"transformer_block": Block(pre=_token_by_token)},
    ),
)
