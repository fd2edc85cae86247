"""Multi-head attention: attention in h subspaces at once (equations 26 and 27)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.spec.attention.causal_mask import Mask


def multi_head_attention(
    xp: Any,
    x: Any,
    w_q: Any,
    w_k: Any,
    w_v: Any,
    w_o: Any,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    context: Any = None,
    attention_mask: ArrayLike | None = None,
    is_causal: bool = False,
) -> Any:
    """Concat(head_1, …, head_H) W_O with head_h = Attention(X W_q^h, C W_k^g, C W_v^g), g = h // (H // G) (26, 27).

    x [B, n_q, d], context C [B, n_k, d_c] or None for x itself; w_q [d, H·d_k], w_k [d_c, G·d_k], w_v [d_c, G·d_v],
    w_o [H·d_v, d_out], where head h owns columns h·d_k … (h+1)·d_k; attention_mask [B, n_k] hides keys where it is 0.
    """
    c = x if context is None else context
    q, k, v = _projected(xp, x, c, w_q, w_k, w_v, num_heads, num_kv_heads)
    o = attention(xp, q, k, v, mask=_seen(attention_mask), is_causal=is_causal)
    return xp.matmul(concat(xp, o), w_o)


def multi_head_attention_vjp(
    xp: Any,
    x: Any,
    w_q: Any,
    w_k: Any,
    w_v: Any,
    w_o: Any,
    g: Any,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    context: Any = None,
    attention_mask: ArrayLike | None = None,
    is_causal: bool = False,
) -> tuple[Any, Any, Any, Any, Any, Any | None]:
    """(dx, dw_q, dw_k, dw_v, dw_o, dcontext); dcontext is None where x is its own context.

    dW_o = Concat(heads)ᵀ g; the heads get g W_oᵀ; through attention; a product Y = X W gives dX = dY Wᵀ, dW = Xᵀ dY.
    """
    c = x if context is None else context
    q, k, v = _projected(xp, x, c, w_q, w_k, w_v, num_heads, num_kv_heads)
    options: dict[str, Any] = {"mask": _seen(attention_mask), "is_causal": is_causal}
    d_o = split(xp, _back(xp, (g, w_o)), num_heads)
    dq, dk, dv = (concat(xp, d) for d in attention_vjp(xp, q, k, v, d_o, **options)[:3])
    dw_o = _weights(xp, concat(xp, attention(xp, q, k, v, **options)), g)
    dw = _weights(xp, x, dq), _weights(xp, c, dk), _weights(xp, c, dv), dw_o
    of_q, of_c = (dq, w_q), ((dk, w_k), (dv, w_v))
    return (_back(xp, of_q, *of_c), *dw, None) if context is None else (_back(xp, of_q), *dw, _back(xp, *of_c))


def split(xp: Any, x: Any, heads: int) -> Any:
    """[B, n, H·d_k] to [B, H, n, d_k]: the features are cut into heads, and then the heads go before the tokens."""
    b, n, width = x.shape
    return xp.swapaxes(xp.reshape(x, (b, n, heads, width // heads)), 1, 2)


def concat(xp: Any, x: Any) -> Any:
    """[B, H, n, d_v] to [B, n, H·d_v]: every token gets its row of each head, one after the other."""
    b, heads, n, width = x.shape
    return xp.reshape(xp.swapaxes(x, 1, 2), (b, n, heads * width))


def _projected(
    xp: Any, x: Any, c: Any, w_q: Any, w_k: Any, w_v: Any, heads: int, groups: int | None
) -> tuple[Any, Any, Any]:
    groups = heads if groups is None else groups
    q, k, v = xp.matmul(x, w_q), xp.matmul(c, w_k), xp.matmul(c, w_v)
    return split(xp, q, heads), split(xp, k, groups), split(xp, v, groups)


def _seen(attention_mask: ArrayLike | None) -> Mask | None:
    return None if attention_mask is None else np.asarray(attention_mask, dtype=bool)[:, None, None, :]


def _back(xp: Any, *products: tuple[Any, Any]) -> Any:
    """dX of Y = X W, given (dY, W), or of several Y of one X: one sum over all columns, as if they lay side by side."""
    g, w = (xp.concat(parts, axis=-1) for parts in zip(*products, strict=True))
    return xp.matmul(g, xp.swapaxes(w, 0, 1))


def _weights(xp: Any, x: Any, g: Any) -> Any:
    """dW of Y = X W, summed over batch and tokens."""
    flat = [xp.reshape(y, (y.shape[0] * y.shape[1], y.shape[2])) for y in (x, g)]
    return xp.matmul(xp.swapaxes(flat[0], 0, 1), flat[1])
