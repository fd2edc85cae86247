"""The Transformer block, with its layer norms before the branches or after the sums (equations 32 to 35)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.layers.feed_forward import feed_forward, feed_forward_vjp
from veriformer.spec.layers.layer_norm import layer_norm, layer_norm_vjp

Params = Mapping[str, Any]
"""w_q, w_k, w_v, w_o, w1 [d, h], b1 [h], w2 [h, d], b2 [d], norm1_weight, norm1_bias, norm2_weight, norm2_bias [d]."""

_PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")
_NETWORK = ("w1", "b1", "w2", "b2")


def attention_sublayer(
    xp: Any,
    x: Any,
    params: Params,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    norm: str = "pre",
    is_causal: bool = False,
    attention_mask: ArrayLike | None = None,
    context: Any = None,
    eps: float = 1e-5,
) -> Any:
    """x + MultiHeadAttn(LN₁(x)) for norm "pre" (32, 33); LN₁(x + MultiHeadAttn(x)) for "post". x [B, n, d].

    With a context [B, n_k, d_c], which is taken as it is, keys and values come from there.
    """
    options = _options(num_heads, num_kv_heads, is_causal, attention_mask)
    return _added(xp, _attention(xp, params, options | {"context": context}), x, norm, eps)


def feed_forward_sublayer(
    xp: Any, x: Any, params: Params, *, norm: str = "pre", activation: str = "gelu", eps: float = 1e-5
) -> Any:
    """x + FFN(LN₂(x)) for norm "pre" (34, 35); LN₂(x + FFN(x)) for "post". x [B, n, d]."""
    return _added(xp, _feed_forward(xp, params, activation), x, norm, eps)


def transformer_block(
    xp: Any,
    x: Any,
    params: Params,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    norm: str = "pre",
    activation: str = "gelu",
    is_causal: bool = False,
    attention_mask: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Any:
    """The attention sublayer, and then h + FFN(LN₂(h)) for norm "pre" (34, 35), LN₂(h + FFN(h)) for "post".

    FFN(x) = σ(x W₁ + b₁) W₂ + b₂ (36) with σ by its name. x [B, n, d]; num_kv_heads is num_heads unless given;
    attention_mask [B, n] hides keys where it is 0; further keys of params are ignored.
    """
    options = _options(num_heads, num_kv_heads, is_causal, attention_mask)
    h = attention_sublayer(xp, x, params, norm=norm, eps=eps, **options)
    return feed_forward_sublayer(xp, h, params, norm=norm, activation=activation, eps=eps)


def transformer_block_vjp(
    xp: Any,
    x: Any,
    params: Params,
    g: Any,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    norm: str = "pre",
    activation: str = "gelu",
    is_causal: bool = False,
    attention_mask: ArrayLike | None = None,
    eps: float = 1e-5,
) -> tuple[Any, dict[str, Any]]:
    """(dx, gradients of params by name), back through the second sublayer and then through the first.

    Before the branch: dx = g + LN'(F'(g)). After the sum: du = LN'(g), dx = du + F'(du). F' and LN' are the
    vector-Jacobian products of branch and norm.
    """
    first = _attention(xp, params, _options(num_heads, num_kv_heads, is_causal, attention_mask))
    second = _feed_forward(xp, params, activation)
    dh, of_second = _added_vjp(xp, second, _added(xp, first, x, norm, eps), g, norm, eps)
    dx, of_first = _added_vjp(xp, first, x, dh, norm, eps)
    return dx, of_first | of_second


def _options(num_heads: int, num_kv_heads: int | None, is_causal: bool, mask: ArrayLike | None) -> dict[str, Any]:
    return {"num_heads": num_heads, "num_kv_heads": num_kv_heads, "is_causal": is_causal, "attention_mask": mask}


@dataclass(frozen=True)
class _Branch:
    """F and its vector-Jacobian product (input and parameters), and the layer norm that belongs to it."""

    value: Callable[[Any], Any]
    vjp: Callable[[Any, Any], tuple[Any, dict[str, Any]]]
    norm: dict[str, Any]


def _attention(xp: Any, params: Params, options: dict[str, Any]) -> _Branch:
    w_q, w_k, w_v, w_o = (xp.asarray(params[name]) for name in _PROJECTIONS)

    def vjp(h: Any, g: Any) -> tuple[Any, dict[str, Any]]:
        dh, *dw, _ = multi_head_attention_vjp(xp, h, w_q, w_k, w_v, w_o, g, **options)
        return dh, dict(zip(_PROJECTIONS, dw, strict=True))

    return _Branch(
        lambda h: multi_head_attention(xp, h, w_q, w_k, w_v, w_o, **options), vjp, _norm(xp, params, "norm1")
    )


def _feed_forward(xp: Any, params: Params, activation: str) -> _Branch:
    w1, b1, w2, b2 = (xp.asarray(params[name]) for name in _NETWORK)

    def vjp(h: Any, g: Any) -> tuple[Any, dict[str, Any]]:
        dh, *dw = feed_forward_vjp(xp, h, w1, b1, w2, b2, g, activation=activation)
        return dh, dict(zip(_NETWORK, dw, strict=True))

    return _Branch(
        lambda h: feed_forward(xp, h, w1, b1, w2, b2, activation=activation), vjp, _norm(xp, params, "norm2")
    )


def _norm(xp: Any, params: Params, place: str) -> dict[str, Any]:
    return {name: xp.asarray(params[name]) for name in (f"{place}_weight", f"{place}_bias")}


def _added(xp: Any, branch: _Branch, x: Any, norm: str, eps: float) -> Any:
    """The stream after the branch."""
    weight, bias = branch.norm.values()
    if _is_pre(norm):
        return x + branch.value(layer_norm(xp, x, weight, bias, eps=eps))
    return layer_norm(xp, x + branch.value(x), weight, bias, eps=eps)


def _added_vjp(xp: Any, branch: _Branch, x: Any, g: Any, norm: str, eps: float) -> tuple[Any, dict[str, Any]]:
    weight, bias = branch.norm.values()
    if _is_pre(norm):
        dh, of_branch = branch.vjp(layer_norm(xp, x, weight, bias, eps=eps), g)
        dx, *of_norm = layer_norm_vjp(xp, x, weight, bias, dh, eps=eps)
        return g + dx, of_branch | dict(zip(branch.norm, of_norm, strict=True))
    du, *of_norm = layer_norm_vjp(xp, x + branch.value(x), weight, bias, g, eps=eps)
    dx, of_branch = branch.vjp(x, du)
    return du + dx, of_branch | dict(zip(branch.norm, of_norm, strict=True))


def _is_pre(norm: str) -> bool:
    return {"pre": True, "post": False}[norm]
