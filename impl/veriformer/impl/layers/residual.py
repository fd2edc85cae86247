"""The residual connection."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.precision import upcast
from veriformer.impl.shapes import match_shapes


def residual(x: Tensor, fx: Tensor, *, scale: float = 1.0) -> Tensor:
    r"""Add what a layer says to what it was given.

    $$y = x + s\, F(x)$$

    one Euler step of length $s$ of $\dot x = F(x)$. The gradient reaches `x` untouched, and `fx` times $s$.

    Shapes: `x [...]`, `fx [...]` → the same. Dtypes: float64, float32, bfloat16, float16, both the same; halves are
    computed in float32. Raises `ValueError` for shapes that differ and a `scale` that is not finite, `TypeError` for
    wrong or mixed dtypes. Equation 4.
    """
    match_shapes({"x": "...", "fx": "..."}, x=x, fx=fx)
    if fx.shape != x.shape:
        expected = f"shape {tuple(x.shape)}, as x has"
        checks.raise_for("fx", expected, f"shape {tuple(fx.shape)}", "nothing is broadcast, so expand it yourself")
    s = checks.finite("scale", scale)
    return add_scaled(x, upcast(fx), s).to(x.dtype)


def add_scaled(x: Tensor, fx: Tensor, scale: float) -> Tensor:
    """Return `x + scale · fx`, in the wider of their dtypes."""
    return x + fx if scale == 1 else torch.add(x, fx, alpha=scale)
