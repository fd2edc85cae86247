"""The Transformer block: attention and a feed-forward network on one residual stream."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.layers.dropout import drop
from veriformer.impl.layers.feed_forward import feed_forward
from veriformer.impl.layers.layer_norm import layer_norm
from veriformer.impl.layers.multi_head_attention import check_attention_mask, multi_head_attention
from veriformer.impl.layers.residual import add_scaled
from veriformer.impl.precision import upcast_half

_PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")
_NETWORK = ("w1", "b1", "w2", "b2")
_NORMS = ("norm1_weight", "norm1_bias", "norm2_weight", "norm2_bias")


def transformer_block(
    x: Tensor,
    params: Mapping[str, Tensor],
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    norm: str = "pre",
    activation: str = "gelu",
    is_causal: bool = False,
    attention_mask: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Add to each token what attention, and then a feed-forward network, make of the stream.

    $$\text{pre:}\quad h = x + \mathrm{MHA}(\mathrm{LN}_1(x)), \quad y = h + \mathrm{FFN}(\mathrm{LN}_2(h))$$
    $$\text{post:}\quad h = \mathrm{LN}_1(x + \mathrm{MHA}(x)), \quad y = \mathrm{LN}_2(h + \mathrm{FFN}(h))$$

    Before the branch, the stream itself is never normalised, so that with `w_o`, `w2` and `b2` zero the block is the
    identity. There are no biases in the projections, no dropout and no final norm.

    Shapes: `x [B, n, d]`; `params` maps `w_q [d, H·d_k]`, `w_k [d, G·d_k]`, `w_v [d, G·d_v]`, `w_o [H·d_v, d]`,
    `w1 [d, f]`, `b1 [f]`, `w2 [f, d]`, `b2 [d]`, and `norm1_weight norm1_bias norm2_weight norm2_bias [d]` to tensors
    (other keys are ignored); `attention_mask [B, n]` → `[B, n, d]`. `activation` is one of `relu`, `sigmoid`, `tanh`,
    `gelu`. Dtypes: float64, float32, bfloat16, float16, all the same; nothing leaves the range of float32 on the way.
    Raises `ValueError` for shapes that do not match, missing parameters and unknown words, `TypeError` for wrong or
    mixed dtypes. Equations 32 to 35.
    """
    p = _check(x, params)
    checks.choice("norm", norm, ("pre", "post"))
    eps = checks.nonnegative("eps", eps)
    real = check_attention_mask(attention_mask, x)

    def attend(h: Tensor) -> Tensor:
        return multi_head_attention(
            h,
            *(p[name] for name in _PROJECTIONS),
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            attention_mask=real,
            is_causal=is_causal,
        )

    def transform(h: Tensor) -> Tensor:
        return feed_forward(h, *(p[name] for name in _NETWORK), activation=activation)

    def norm1(h: Tensor) -> Tensor:
        return layer_norm(h, p["norm1_weight"], p["norm1_bias"], eps=eps)

    def norm2(h: Tensor) -> Tensor:
        return layer_norm(h, p["norm2_weight"], p["norm2_bias"], eps=eps)

    h = sublayer(upcast_half(x), attend, norm1, norm)
    return sublayer(h, transform, norm2, norm).to(x.dtype)


def sublayer(
    x: Tensor,
    branch: Callable[..., Tensor],
    norm: Callable[[Tensor], Tensor],
    placement: str,
    scale: float = 1.0,
    dropout_p: float = 0.0,
    inputs: tuple[Any, ...] = (),
) -> Tensor:
    """Return `x + scale · branch(norm(x), *inputs)`, or with the placement `"post"` `norm(x + scale · branch(x, …))`.

    What the branch says is dropped with probability `dropout_p`.
    """
    pre = placement == "pre"
    fx = branch(norm(x) if pre else x, *inputs)
    y = add_scaled(x, drop(fx, dropout_p, None) if dropout_p else fx, scale)
    return y if pre else norm(y)


def _check(x: Tensor, params: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the parameters that count, with the range of float32."""
    if checks.tensor("x", x).ndim != 3 or x.shape[2] == 0:
        checks.raise_for("x", "shape [B, n, d] with d of 1 or more", f"shape {tuple(x.shape)}", "reshape it")
    if not isinstance(params, Mapping):
        checks.raise_for("params", "a mapping from names to tensors", type(params).__name__, "pass a dict", TypeError)
    names = (*_PROJECTIONS, *_NETWORK, *_NORMS)
    if missing := [name for name in names if name not in params]:
        checks.raise_for(
            "params", f"the keys {', '.join(names)}", f"none of {', '.join(missing)}", "add what is missing"
        )
    p = {name: checks.tensor(f"params[{name!r}]", params[name]) for name in names}
    checks.same_dtype_and_device({"x": x} | {f"params[{name!r}]": value for name, value in p.items()})
    width = (x.shape[2],)
    for name in ("w_o", "w2"):
        if p[name].ndim != 2 or p[name].shape[1:] != width:
            _refuse_shape(name, f"{width[0]} columns, the width of x", p[name])
    for name in (*_NORMS, "b2"):
        if p[name].shape != width:
            _refuse_shape(name, f"shape [{width[0]}], the width of x", p[name])
    return {name: upcast_half(value) for name, value in p.items()}


def _refuse_shape(name: str, expected: str, value: Tensor) -> None:
    checks.raise_for(f"params[{name!r}]", expected, f"shape {tuple(value.shape)}", "the stream keeps its width")
