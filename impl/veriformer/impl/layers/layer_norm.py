"""LayerNorm: centre each vector, divide by its spread, then scale and shift."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from veriformer.impl.derivatives import apply
from veriformer.impl.layers.normalizing import check_vectors, over_rows
from veriformer.impl.precision import widen


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
    return apply(_LayerNorm, widen(x), weight, bias, float(eps)).to(x.dtype)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
        mu = x.mean(-1, keepdim=True)
        centred = x - mu
        rstd = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
        y = centred * rstd
        if weight is not None:
            y = y * weight
        if bias is not None:
            y = y + bias
        ctx.save_for_backward(x, weight, mu, rstd)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mu, rstd = ctx.saved_tensors
        x_hat = (x - mu) * rstd
        dx = dweight = None
        if ctx.needs_input_grad[0]:
            a = g if weight is None else g * weight
            dx = rstd * (a - a.mean(-1, keepdim=True) - x_hat * (a * x_hat).mean(-1, keepdim=True))
        if ctx.needs_input_grad[1]:
            dweight = over_rows(g * x_hat)
        return dx, dweight, over_rows(g) if ctx.needs_input_grad[2] else None, None
