"""Scaled dot-product attention and its gradients (equations 20–24a, section 5.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.exact_inputs import exactly_equal, unbroadcast
from veriformer.spec.attention.causal_mask import Mask, masked_softmax, visible


def attention(
    xp: Any,
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Mask | None = None,
    bias: Any = None,
    is_causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    keep: Mask | None = None,
    dropout_p: float = 0.0,
    alignment: str = "bottom-right",
) -> Any:
    """O = dropout(softmax(cap(scale · Q Kᵀ) + bias, over visible keys)) V, with scale = 1 / √d_k unless given.

    q [B, H, n_q, d_k], k [B, G, n_k, d_k], v [B, G, n_k, d_v]; head h reads group h // (H // G). cap(s) is
    c · tanh(s / c) with c = softcap. mask and bias align right with [B, H, n_q, n_k]; a bias of −∞ hides its key.
    keep holds the weights that dropout spares, which then count 1 / (1 − p). A query that sees nothing gets zeros.
    """
    see = visible(q.shape[-2], k.shape[-2], mask=mask, is_causal=is_causal, window=window, alignment=alignment)
    t = _forward(xp, q, k, v, bias, see, scale, softcap, keep, dropout_p)
    return xp.matmul(t.p_dropped, t.v)


def attention_vjp(
    xp: Any,
    q: Any,
    k: Any,
    v: Any,
    g: Any,
    *,
    mask: Mask | None = None,
    bias: Any = None,
    is_causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    keep: Mask | None = None,
    dropout_p: float = 0.0,
    alignment: str = "bottom-right",
) -> tuple[Any, Any, Any, Any | None]:
    """(dq, dk, dv, dbias) from the cotangent g [B, H, n_q, d_v]; dbias has the shape of bias, or is None.

    dV = P_dᵀ g; dP = dropout(g Vᵀ); dS = P ⊙ (dP − Σ P ⊙ dP); dbias = dS summed over what was broadcast;
    dS' = scale · dS ⊙ (1 − tanh²); dQ = dS' K; dK = dS'ᵀ Q; a group's gradient sums over its heads.
    """
    see = visible(q.shape[-2], k.shape[-2], mask=mask, is_causal=is_causal, window=window, alignment=alignment)
    t = _forward(xp, q, k, v, bias, see, scale, softcap, keep, dropout_p)
    dp = _drop(xp, xp.matmul(g, xp.swapaxes(t.v, -1, -2)), keep, dropout_p)
    ds = t.p * (dp - xp.sum(t.p * dp, axis=-1, keepdims=True))
    d_scaled = ds if t.tanh is None else ds * (1 - t.tanh * t.tanh)
    d_raw = _scaled(xp, d_scaled, q, scale)  # before the products: of the two orders the one that may underflow more
    dq, dk, dv = xp.matmul(d_raw, t.k), _to_keys(xp, d_raw, t.q, k), _to_keys(xp, t.p_dropped, g, v)
    return dq, dk, dv, None if bias is None else unbroadcast(xp, ds, bias.shape)


@dataclass(frozen=True)
class _Trace:
    """Intermediate results of the forward pass for the backward pass; q, k and v without the rows that play no part."""

    q: Any
    k: Any
    v: Any
    tanh: Any
    p: Any
    p_dropped: Any


def _forward(
    xp: Any,
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    see: Mask,
    scale: float | None,
    softcap: float | None,
    keep: Mask | None,
    dropout_p: float,
) -> _Trace:
    if bias is not None:
        dark = exactly_equal(bias, -math.inf)
        bias, see = xp.where(dark, 0, bias), see & ~dark
    see = np.broadcast_to(see, (*q.shape[:-1], k.shape[-2]))
    q, k, v = _used(xp, q, k, v, see)
    s = _scaled(xp, xp.matmul(q, xp.swapaxes(k, -1, -2)), q, scale)
    tanh = None if softcap is None else xp.tanh(s / softcap)
    s = s if tanh is None else tanh * softcap
    p = masked_softmax(xp, s if bias is None else s + bias, see)
    return _Trace(q, k, v, tanh, p, _drop(xp, p, keep, dropout_p))


def _used(xp: Any, q: Any, k: Any, v: Any, see: Mask) -> tuple[Any, Any, Any]:
    """Repeat the groups over their heads, and blank what no one sees: hidden rows may hold NaN, and 0 · NaN is NaN."""
    repeats = q.shape[1] // k.shape[1]
    seen = np.swapaxes(see.any(axis=-2, keepdims=True), -1, -2)
    k = xp.where(seen, xp.repeat(k, repeats, axis=1), 0)
    v = xp.where(seen, xp.repeat(v, repeats, axis=1), 0)
    return xp.where(see.any(axis=-1, keepdims=True), q, 0), k, v


def _scaled(xp: Any, s: Any, q: Any, scale: float | None) -> Any:
    return s / xp.sqrt(xp.asarray(q.shape[-1])) if scale is None else s * scale


def _drop(xp: Any, p: Any, keep: Mask | None, dropout_p: float) -> Any:
    if keep is None:
        return p
    return xp.where(keep, p, 0) / (1 if dropout_p == 1 else 1 - xp.asarray(dropout_p))


def _to_keys(xp: Any, weights: Any, rows: Any, x: Any) -> Any:
    """weightsᵀ rows, for the keys or values x of each group: one sum over the queries of all its heads."""
    groups, of_group = x.shape[1], weights.shape[1] // x.shape[1] * weights.shape[2]
    weights, rows = (xp.reshape(y, (y.shape[0], groups, of_group, y.shape[3])) for y in (weights, rows))
    return xp.matmul(xp.swapaxes(weights, -1, -2), rows)
