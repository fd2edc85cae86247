"""LayerNorm: centre each vector, divide by its spread, then scale and shift."""

from torch import Tensor
from torch.nn import functional as F

from veriformer.impl.layers.normalizing import check_vectors
from veriformer.impl.precision import kernels_lose_digits, upcast


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Tensor:
    r"""Normalize the last axis to mean 0 and variance 1, then apply `weight` and `bias`.

    $$y = \gamma \odot \hat x + \beta, \quad \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}, \quad
      \mu = \frac1d \sum_i x_i, \quad \sigma^2 = \frac1d \sum_i (x_i - \mu)^2$$

    The variance is that of the centred vector (two passes): the difference of two large moments would cancel. With
    $a = \gamma \odot g$ the gradient is
    $\partial x = (a - \bar a - \hat x\, \overline{a \hat x}) / \sqrt{\sigma^2 + \epsilon}$, bars being means over the
    vector, and $\partial\gamma = \sum g \odot \hat x$, $\partial\beta = \sum g$ over all vectors.

    Shapes: `x [..., d]`, `weight [d]`, `bias [d]` → `[..., d]`. Dtypes: float64, float32, bfloat16, float16, all the
    same; halves are computed in float32, the product with `weight` included. Raises `ValueError` for `d = 0`, shapes
    that do not match and `eps < 0`, `TypeError` for wrong or mixed dtypes. Equation 19.
    """
    check_vectors(x, eps, weight=weight, bias=bias)
    return normalize(x, weight, bias, float(eps))


def normalize(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Return the layer norm of `x [..., d]` by PyTorch's fused kernels; under autocast parameters may be wider."""
    if not kernels_lose_digits(x):
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)
    weight, bias = (None if p is None else upcast(p) for p in (weight, bias))
    return F.layer_norm(upcast(x), x.shape[-1:], weight, bias, eps).to(x.dtype)
