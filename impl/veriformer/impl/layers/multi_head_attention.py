"""Multi-head attention: project, attend in every head, put the heads side by side, project again."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.sdpa import attention
from veriformer.impl.linear import linear
from veriformer.impl.precision import upcast_half
from veriformer.impl.shapes import match_shapes


def multi_head_attention(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    context: Tensor | None = None,
    attention_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    r"""Let the tokens of `x` attend to those of `context`, or to one another, in `num_heads` subspaces.

    $$\mathrm{MultiHead}(X) = \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_H)\, W_O, \quad
      \mathrm{head}_h = \mathrm{Attention}(X W_Q^h,\, C W_K^g,\, C W_V^g), \quad g = \lfloor h / (H / G) \rfloor$$

    Head `h` owns columns `h · d_k` to `(h + 1) · d_k` of `w_q`, and so on for the `G = num_kv_heads` heads of `w_k` and
    `w_v` (as many as `num_heads` unless given). `is_causal` aligns at the bottom right. `attention_mask` marks real
    tokens of the context with 1 (or True), padding with 0: padding is no key, whatever it holds, NaN included. A query
    without a key gives zeros.

    Shapes: `x [B, n_q, d]`, `context [B, n_k, d_c]`, `w_q [d, H·d_k]`, `w_k [d_c, G·d_k]`, `w_v [d_c, G·d_v]`,
    `w_o [H·d_v, d_out]`, `attention_mask [B, n_k]` → `[B, n_q, d_out]`. Dtypes: float64, float32, bfloat16, float16,
    all the same; nothing leaves the range of float32 on the way. Raises `ValueError` for sizes that do not match and
    heads that do not divide, `TypeError` for wrong or mixed dtypes. Equations 26 and 27.
    """
    H, G = _check(x, w_q, w_k, w_v, w_o, num_heads, num_kv_heads, context)
    C = x if context is None else context
    real = check_attention_mask(attention_mask, C)
    X, C = _without_padding(x, C, real, alone=context is None)

    q = split_heads(linear(X, upcast_half(w_q)), H)  # [B, H, n_q, d_k]
    k = split_heads(linear(C, upcast_half(w_k)), G)  # [B, G, n_k, d_k]
    v = split_heads(linear(C, upcast_half(w_v)), G)  # [B, G, n_k, d_v]
    mask = None if real is None else real[:, None, None, :]
    o = attention(q, k, v, mask=mask, is_causal=is_causal)  # [B, H, n_q, d_v]
    return project_heads(o, upcast_half(w_o)).to(x.dtype)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Cut the features into heads, and put the heads before the tokens: `[B, n, H·d]` → `[B, H, n, d]`."""
    return x.view(*x.shape[:-1], heads, x.shape[-1] // heads).transpose(1, 2)


def project_heads(o: Tensor, w_o: Tensor, b_o: Tensor | None = None) -> Tensor:
    """Put the heads side by side, and project them: `[B, H, n, d_v]` → `[B, n, d_out]`."""
    return linear(o.transpose(1, 2).flatten(2), w_o, b_o)


def check_attention_mask(attention_mask: Tensor | None, tokens: Tensor) -> Tensor | None:
    """Return which of the tokens `[B, n, d]` are real, bool `[B, n]`; refuse masks that do not say."""
    if attention_mask is None:
        return None
    name = "attention_mask"
    if not isinstance(attention_mask, Tensor):
        checks.raise_for(name, "a torch.Tensor", type(attention_mask).__name__, "use torch.tensor(...)", TypeError)
    if attention_mask.shape != tokens.shape[:2]:
        expected = f"shape {list(tokens.shape[:2])}, one entry per token that may be a key"
        checks.raise_for(name, expected, f"shape {tuple(attention_mask.shape)}", "1 marks a real token, 0 padding")
    if attention_mask.device != tokens.device:
        checks.raise_for(name, f"device {tokens.device}, where the tokens are", attention_mask.device, "move it")
    if attention_mask.dtype == torch.bool:
        return attention_mask
    if attention_mask.is_complex():
        checks.raise_for(name, "bool, or zeros and ones", attention_mask.dtype, "use mask.bool()", TypeError)
    real = attention_mask == 1
    on_cpu = attention_mask.device.type == "cpu" and checks.can_read_values(attention_mask)
    if on_cpu and not bool((real | (attention_mask == 0)).all()):
        checks.raise_for(name, "bool, or zeros and ones", "other numbers", "a bias to add is no attention mask")
    return real


def _check(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    num_heads: int,
    num_kv_heads: int | None,
    context: Tensor | None,
) -> tuple[int, int]:
    """Return the numbers of heads and of key heads."""
    H = checks.integer("num_heads", num_heads, minimum=1)
    G = H if num_kv_heads is None else checks.integer("num_kv_heads", num_kv_heads, minimum=1)
    if H % G:
        checks.raise_for(
            "num_kv_heads", f"a number that divides num_heads={H}", G, "each key head serves as many heads"
        )
    tokens = {"x": x} if context is None else {"x": x, "context": context}
    shapes = {"x": "B n d", "w_q": "d q", "w_k": "d k", "w_v": "d v", "w_o": "o e"}
    if context is not None:
        shapes |= {"context": "B m c", "w_k": "c k", "w_v": "c v"}
    order = [name for name in ("x", "context", "w_q", "w_k", "w_v", "w_o") if name in shapes]
    sizes = match_shapes({name: shapes[name] for name in order}, **tokens, w_q=w_q, w_k=w_k, w_v=w_v, w_o=w_o)
    for name, letter, heads in (("w_q", "q", H), ("w_k", "k", G), ("w_v", "v", G)):
        if sizes[letter] % heads or not sizes[letter]:
            checks.raise_for(
                name, f"a multiple of {heads} columns, one head after the other", sizes[letter], "see heads"
            )
    if sizes["k"] // G != sizes["q"] // H:
        expected = f"{G} heads of d_k = {sizes['q'] // H}, the width of the queries in w_q"
        checks.raise_for("w_k", expected, f"{sizes['k']} columns", "num_kv_heads says how many heads w_k has")
    if sizes["o"] != sizes["v"] // G * H:
        expected = f"{sizes['v'] // G * H} rows, {H} heads of the d_v = {sizes['v'] // G} that w_v has"
        checks.raise_for("w_o", expected, sizes["o"], "it takes the heads side by side")
    return H, G


def _without_padding(x: Tensor, C: Tensor, real: Tensor | None, *, alone: bool) -> tuple[Tensor, Tensor]:
    """Widen the tokens, and blank the padding: 0 · NaN would be NaN, also in the gradients of the weights.

    As keys all of it goes. As queries only what is not finite does: what padding asks is nobody's business but its own.
    """
    X, C = upcast_half(x), upcast_half(C)
    if real is None:
        return X, C
    padding = ~real[..., None]
    if alone:
        X = X.masked_fill(padding & ~X.isfinite(), 0)
    return X, C.masked_fill(padding, 0)
