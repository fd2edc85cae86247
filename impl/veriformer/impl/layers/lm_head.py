"""The head of a language model: features to logits."""

from torch import Tensor

from veriformer.impl.layers.token_embedding import check_table
from veriformer.impl.linear import linear
from veriformer.impl.precision import upcast_half
from veriformer.impl.shapes import match_shapes


def lm_head(h: Tensor, weight: Tensor) -> Tensor:
    r"""Score every token of the vocabulary by its inner product with the features.

    $$z = h E^\top$$

    `weight` may be the table of `token_embedding`, which then collects both gradients.

    Shapes: `h [..., d]`, `weight [V, d]` → logits `[..., V]`. Dtypes: float64, float32, bfloat16, float16, both the
    same; halves accumulate in float32. Raises `ValueError` for shapes that do not match and `V = 0`, `TypeError` for
    wrong or mixed dtypes. Equation 40.
    """
    match_shapes({"h": "... d", "weight": "V d"}, h=h, weight=weight)
    check_table(weight)
    return logits_of(upcast_half(h), upcast_half(weight)).to(h.dtype)


def logits_of(h: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `h weightᵀ + bias`, `[..., V]`, of arguments that are known to fit."""
    return linear(h, weight.mT, bias)
