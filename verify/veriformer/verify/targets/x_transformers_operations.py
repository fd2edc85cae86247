"""x-transformers under the contract's names: its functions and modules, and models of its three kinds.

The arguments are checked first. Attention comes written out, and through PyTorch's kernel (``flash``). A query head h
of the library reads key head h mod G, the contract's h // (H // G): heads are put into its order and back. Its
positions are computed in fp32.
"""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module, metadata
from operator import not_
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.targets import x_transformers_models
from veriformer.verify.targets.argument_validation import AttentionOptions, with_validation
from veriformer.verify.targets.library_calls import by_rows, feed_forward, network, t5_buckets, with_weights
from veriformer.verify.targets.seeding import seed_from

_attend: Any = import_module("x_transformers.attend")
_library: Any = import_module("x_transformers.x_transformers")
_sampling: Any = import_module("x_transformers.autoregressive_wrapper")

_POSITIONS = ("rope", "sinusoidal_encoding", "alibi_slopes", "alibi_bias")
_WRITTEN_OUT = ("attention", "multi_head_attention")
"""Operations that are fp32 in every call, and those whose softmax is where it is written out."""

_PYTORCHS = "it calls PyTorch's"
_NONE = "it has none"
_WITHIN = "a part of its wrapper's loss or generation, not a function"
_NOT_PROVIDED = {
    **dict.fromkeys(("softmax", "logsumexp", "cross_entropy", "gelu", "silu", "dropout", "lm_head"), _PYTORCHS),
    **dict.fromkeys(("perplexity", "smooth_labels", "expected_calibration_error", "mse_loss"), _NONE),
    **dict.fromkeys(("mixture_of_experts", "xavier_normal", "linear_attention"), _NONE),
    **dict.fromkeys(("clip_grad_norm", "accumulate_gradients"), _NONE),
    **dict.fromkeys(("temperature_scale", "masked_lm_loss", "greedy", "beam_search"), _WITHIN),
    **dict.fromkeys(("kv_cache", "cached_attention"), "what it keeps are keys and values that its models return"),
    **dict.fromkeys(("gradient_descent", "sgd_momentum", "adam", "adamw"), "it has no optimizers"),
    **dict.fromkeys(("warmup", "warmup_cosine", "noam"), "it has no schedules of rates"),
    **dict.fromkeys(("bpe_train", "bpe_encode", "unigram_segment"), "it has no such tokenizer"),
    "layer_norm": "its LayerNorm has no bias",
    "rms_norm": "its RMSNorm divides by the norm and has no epsilon under the root",
    "residual": "its Residual scales the stream, not the branch",
    "causal_mask": "its windows are made within its module",
    "transformer_block": "its layers come in stacks, and its norms have no biases",
}
_CONVENTIONS = {"choice.ties": "unspecified"}  # torch.topk and torch.sort promise no order among equal entries

_ACTIVATIONS: dict[str, nn.Module] = {"relu": nn.ReLU(), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "gelu": nn.GELU()}


def _in_turn(x: Tensor, heads: int, groups: int, axis: int) -> Tensor:
    """Permute heads from consecutive groups to interleaved groups; H // G in place of G permutes back."""
    shape = *x.shape[:axis], groups, heads // groups, x.shape[axis] // heads, *x.shape[axis + 1 :]
    return x.reshape(shape).transpose(axis, axis + 1).reshape(x.shape)


def _attention(flash: bool, q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Call Attend. It caps the scores after adding the bias, and its kernel caps nothing.

    Where that matters the capped scores are given as queries, and the identity as keys.
    """
    H, G, n_k = q.shape[1], k.shape[1], k.shape[2]
    bias = None if o.bias is None else o.bias.to(q.dtype).expand(-1, H, -1, n_k)
    scale, softcap, q = o.scale, o.softcap, _in_turn(q, H, G, 1)
    see, bias = (None if x is None else _in_turn(x, H, G, 1) if x.shape[1] == H else x for x in (_seen(q, k, o), bias))
    if softcap is not None and (flash or bias is not None):
        q, k, scale, softcap = (
            _capped(q, k, scale, softcap),
            torch.eye(n_k, dtype=q.dtype).expand(*k.shape[:3], n_k),
            1.0,
            None,
        )
    attend = _attend.Attend(
        causal=o.is_causal,
        scale=scale,
        dropout=float(o.dropout_p),
        flash=flash,
        softclamp_logits=softcap is not None,
        **({} if softcap is None else {"logit_softclamp_value": float(softcap)}),
    ).train(o.training)
    with seed_from(o.generator if o.training and o.dropout_p else None):
        out: Tensor = attend(q, k, v, mask=see, attn_bias=bias)[0]
    return _in_turn(out, H, H // G, 1)


def _seen(q: Tensor, k: Tensor, o: AttentionOptions) -> Tensor | None:
    """Return the mask [B, H, n_q, n_k], or 1 for B or H, combined with the window, as the library's module makes it."""
    see = None if o.mask is None else o.mask.expand(-1, -1, q.shape[2], k.shape[2])
    if o.window is None:
        return see
    n_q, n_k = q.shape[2], k.shape[2]
    distance = torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)
    near = (distance < o.window).expand(1, 1, n_q, n_k)
    return near if see is None else see & near


def _capped(q: Tensor, k: Tensor, scale: float | None, softcap: float) -> Tensor:
    scores = (
        q @ k.repeat(1, q.shape[1] // k.shape[1], 1, 1).mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    )
    capped: Tensor = _attend.softclamp(scores, float(softcap))
    return capped


def _multi_head_attention(
    flash: bool,
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
    """Call the library's module, which multiplies by transposed weights."""
    H = int(num_heads)
    G = H if num_kv_heads is None else int(num_kv_heads)
    module = _library.Attention(
        x.shape[-1],
        dim_head=w_q.shape[1] // H,
        dim_context=w_k.shape[0],
        value_dim_head=w_v.shape[1] // G,
        dim_out=w_o.shape[1],
        heads=H,
        kv_heads=G,
        causal=is_causal,
        flash=flash,
        project_out=True,
    )
    weights = {
        "to_q.weight": _in_turn(w_q, H, G, 1).T,
        "to_k.weight": w_k.T,
        "to_v.weight": w_v.T,
        "to_out.weight": _in_turn(w_o, H, G, 0).T,
    }
    real = None if attention_mask is None else attention_mask.bool()
    given = {"mask": real} if context is None else {"context": context, "context_mask": real}
    out: Tensor = torch.func.functional_call(module, weights, (x,), given)
    return out


def _network(activation: str, dropout_p: float) -> Any:
    return _library.FeedForward(1, custom_activation=_ACTIVATIONS[activation], dropout=dropout_p)


def _swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """Apply FeedForward with glu, its biases zero."""
    zeros = torch.zeros(2 * w_up.shape[1], dtype=x.dtype), torch.zeros(w_down.shape[1], dtype=x.dtype)
    return network(
        _library.FeedForward(1, glu=True, swish=True), x, torch.cat([w_up, w_gate], 1), zeros[0], w_down, zeros[1]
    )


def _token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    return with_weights(_library.TokenEmbedding(1, 1), {"emb.weight": weight}, ids)


def _top_k_filter(logits: Tensor, k: int) -> Tensor:
    return by_rows(partial(_sampling.top_k, k=int(k)), logits)


def _top_p_filter(logits: Tensor, p: float) -> Tensor:
    return by_rows(partial(_sampling.top_p, thres=float(p)), logits)


def _sinusoidal_encoding(num_positions: int, d_model: int, *, base: float) -> Tensor:
    """Return ScaledSinusoidalEmbedding at scale 1, its halves interleaved: the library puts sines before cosines."""
    module = _library.ScaledSinusoidalEmbedding(int(d_model), theta=float(base))
    rows = torch.empty(1, int(num_positions), dtype=torch.int64)
    table: Tensor = torch.func.functional_call(module, {"scale": torch.ones(1)}, (rows,))
    return table.reshape(-1, 2, d_model // 2).mT.flatten(-2).to(torch.get_default_dtype())


def _rope(x: Tensor, positions: Tensor, *, base: float, pairing: str, scaling: tuple[str, float] | None) -> Tensor:
    """Call the library's embedding, which pairs neighbours; halves are laid side by side first.

    Width 2, for which it divides by zero, takes the first pair of width 4: its frequency is 1 too. Its factor of
    interpolation is 1 or more; positions are divided by a smaller one.
    """
    n, d = x.shape[-2:]
    kind, s = (None, 1.0) if scaling is None else (scaling[0], float(scaling[1]))
    options = {"base_rescale_factor": s} if kind == "ntk" else {"interpolation_factor": max(s, 1.0)}
    embedding = _library.RotaryEmbedding(max(d, 4), base=float(base), **options)
    t = positions.expand(x.shape[:-1]).reshape(-1, n)
    angles, scale = embedding(t.float() / s if kind == "linear" and s < 1 else t)
    rows = x.reshape(-1, 1, n, d)
    if pairing == "half":
        rows = rows.reshape(-1, 1, n, 2, d // 2).mT.flatten(-2)
    out: Tensor = _library.apply_rotary_pos_emb(rows, angles[..., :d], scale)
    if pairing == "half":
        out = out.reshape(-1, 1, n, d // 2, 2).mT.flatten(-2)
    return out.reshape(x.shape)


def _alibi_slopes(num_heads: int) -> Tensor:
    slopes: Tensor = _library.AlibiPositionalBias(int(num_heads)).slopes
    return slopes.flatten()


def _alibi_bias(num_heads: int, n_q: int, n_k: int) -> Tensor:
    """Return AlibiPositionalBias; an empty axis, which it refuses, is cut from one of length 1."""
    bias: Tensor = _library.AlibiPositionalBias(int(num_heads))(max(int(n_q), 1), max(int(n_k), 1))
    return bias[:, :n_q, :n_k]


_OPERATIONS: dict[str, Any] = {
    **dict.fromkeys(("mlp", "feed_forward"), feed_forward(_network)),
    "swiglu": _swiglu,
    "token_embedding": _token_embedding,
    "top_k_filter": _top_k_filter,
    "top_p_filter": _top_p_filter,
    "sinusoidal_encoding": _sinusoidal_encoding,
    "rope": _rope,
    "alibi_slopes": _alibi_slopes,
    "alibi_bias": _alibi_bias,
    "t5_relative_position_bucket": t5_buckets(_library.RelativePositionBias._relative_position_bucket, not_),
}


def _target(flash: bool, name: str) -> SimpleNamespace:
    narrow = _POSITIONS if flash else (*_POSITIONS, *_WRITTEN_OUT)
    target = with_validation(
        {
            "dtypes": {operation: ["fp32", "bf16", "fp16"] for operation in narrow},
            "conventions": _CONVENTIONS,
            "not_provided": _NOT_PROVIDED,
        },
        attention=partial(_attention, flash),
        multi_head_attention=partial(_multi_head_attention, flash),
        **_OPERATIONS,
        **x_transformers_models.RAW_OPS,
    )
    target.__name__, target.__version__ = name, metadata.version("x-transformers")
    return target


WRITTEN_OUT = _target(flash=False, name="x-transformers")
FLASH = _target(flash=True, name="x-transformers:flash")
"""The implementations, which differ in attention."""
