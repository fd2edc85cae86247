"""RMSNorm: divide each vector by its root mean square, then scale."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from veriformer.impl.derivatives import apply_autograd_function
from veriformer.impl.layers.normalizing import check_vectors
from veriformer.impl.precision import upcast


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    r"""Divide the last axis by its root mean square, then apply `weight`.

    $$y = \gamma \odot \hat x, \quad \hat x = x \Big/ \sqrt{\tfrac1d \textstyle\sum_i x_i^2 + \epsilon}$$

    With $a = \gamma \odot g$ the gradient is
    $\partial x = (a - \hat x\, \overline{a \hat x}) \big/ \sqrt{\tfrac1d \sum_i x_i^2 + \epsilon}$, the bar being a
    mean over the vector, and $\partial\gamma = \sum g \odot \hat x$ over all vectors.

    Shapes: `x [..., d]`, `weight [d]` → `[..., d]`. Dtypes: float64, float32, bfloat16, float16, both the same; halves
    are computed in float32, the product with `weight` included. Raises `ValueError` for `d = 0`, shapes that do not
    match and `eps < 0`, `TypeError` for wrong or mixed dtypes. Document 002, section 3.4.
    """
    check_vectors(x, eps, weight=weight)
    return normalize_rms(x, weight, float(eps))


def normalize_rms(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Return the RMS norm of `x [..., d]`; under autocast the weight may be wider."""
    return apply_autograd_function(_RMSNorm, upcast(x), weight, eps).to(x.dtype)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
        rrms = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        y = x * rrms
        ctx.save_for_backward(x, weight, rrms)
        return y if weight is None else y * weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, rrms = ctx.saved_tensors
        x_hat = x * rrms
        dx = None
        if ctx.needs_input_grad[0]:
            a = g if weight is None else g * weight
            dx = rrms * (a - x_hat * (a * x_hat).mean(-1, keepdim=True))
        return dx, (g * x_hat).reshape(-1, x.shape[-1]).sum(0) if ctx.needs_input_grad[1] else None, None
