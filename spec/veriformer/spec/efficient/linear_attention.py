"""Linear attention: a product of features in place of the exponential, and no scores at all (equation 45)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from veriformer.spec.attention.causal_mask import visible


class Feature(NamedTuple):
    """A feature map φ, entry by entry, and its slope."""

    function: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]


def elu_plus_one(xp: Any, x: Any) -> Any:
    """x + 1 for x > 0, e^x for x ≤ 0: positive everywhere, and written without a case that rounding could mistake."""
    return xp.exp(xp.minimum(x, 0)) + xp.maximum(x, 0)


def elu_plus_one_slope(xp: Any, x: Any) -> Any:
    """1 for x > 0, e^x for x ≤ 0; continuous at 0."""
    return xp.exp(xp.minimum(x, 0))


def elu_then_one(xp: Any, x: Any) -> Any:
    """elu(x), and then 1 added to it: the same number, whose digits the 1 takes where it is small."""
    return xp.maximum(x, 0) + (xp.exp(xp.minimum(x, 0)) - 1) + 1


def elu_then_one_slope(xp: Any, x: Any) -> Any:
    """elu(x) + 1 for x ≤ 0, and 1 above."""
    return (xp.exp(xp.minimum(x, 0)) - 1) + 1


FEATURE_MAPS = {
    "elu+1": Feature(elu_plus_one, elu_plus_one_slope),
    "elu, +1": Feature(elu_then_one, elu_then_one_slope),
}
"""Feature map in two forms, equal over the reals; the second is how it is usually computed."""


def linear_attention(xp: Any, q: Any, k: Any, v: Any, *, feature_map: str = "elu+1", is_causal: bool = False) -> Any:
    """φ(Q)(φ(K)ᵀ V) / φ(Q)(φ(K)ᵀ 1) over the keys that a query sees (45); a query that sees none gets zeros.

    q [B, H, n_q, d], k [B, H, n_k, d], v [B, H, n_k, d_v]; causal with the last query at the last key.
    """
    t = _forward(xp, q, k, FEATURE_MAPS[feature_map], is_causal)
    return xp.matmul(t.p, v)


def linear_attention_vjp(
    xp: Any, q: Any, k: Any, v: Any, g: Any, *, feature_map: str = "elu+1", is_causal: bool = False
) -> tuple[Any, Any, Any]:
    """(dq, dk, dv) from g [B, H, n_q, d_v].

    dV = Pᵀ g with the weights P = φ(Q) φ(K)ᵀ over their row sums D; dA = (g Vᵀ − Σ g ⊙ O) / D where visible;
    dQ = dA φ(K) ⊙ φ'(Q); dK = dAᵀ φ(Q) ⊙ φ'(K).
    """
    phi = FEATURE_MAPS[feature_map]
    t = _forward(xp, q, k, phi, is_causal)
    output = xp.matmul(t.p, v)
    da = xp.matmul(g, xp.swapaxes(v, -1, -2)) - xp.sum(g * output, axis=-1, keepdims=True)
    da = xp.where(t.see, da, 0) / t.sums
    dq = xp.matmul(da, t.phi_k) * phi.slope(xp, q)
    dk = xp.matmul(xp.swapaxes(da, -1, -2), t.phi_q) * phi.slope(xp, k)
    return dq, dk, xp.matmul(xp.swapaxes(t.p, -1, -2), g)


class State(NamedTuple):
    """State of the causal form, over all keys so far: S = Σ φ(k)ᵀ v [B, H, d, d_v] and z = Σ φ(k) [B, H, d, 1]."""

    s: Any
    z: Any


def linear_step(xp: Any, state: State, q: Any, k: Any, v: Any, *, feature_map: str = "elu+1") -> tuple[Any, State]:
    """Take a token, q and k [B, H, 1, d] and v [B, H, 1, d_v]: S ← S + φ(k)ᵀ v, z ← z + φ(k), o = φ(q) S / φ(q) z."""
    phi = FEATURE_MAPS[feature_map].function
    column = xp.swapaxes(phi(xp, k), -1, -2)
    state = State(state.s + xp.matmul(column, v), state.z + column)
    phi_q = phi(xp, q)
    return xp.matmul(phi_q, state.s) / xp.matmul(phi_q, state.z), state


class _Trace(NamedTuple):
    phi_q: Any
    phi_k: Any
    see: Any
    sums: Any
    p: Any


def _forward(xp: Any, q: Any, k: Any, phi: Feature, is_causal: bool) -> _Trace:
    see = np.broadcast_to(visible(q.shape[-2], k.shape[-2], is_causal=is_causal), (*q.shape[:-1], k.shape[-2]))
    phi_q, phi_k = phi.function(xp, q), phi.function(xp, k)
    a = xp.where(see, xp.matmul(phi_q, xp.swapaxes(phi_k, -1, -2)), 0)
    sums = xp.where(see.any(axis=-1, keepdims=True), xp.sum(a, axis=-1, keepdims=True), 1)
    return _Trace(phi_q, phi_k, see, sums, a / sums)
