"""Sums over the visible keys only, whatever the hidden ones hold.

A weight of zero removes a finite number from a product of matrices, but not NaN or ∞, since 0 · NaN is NaN. And zeroing
such rows beforehand would be wrong too: a key may be hidden from one query and visible to another, where it counts.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def masked_matmul(weights: Tensor, rows: Tensor, visible: Tensor) -> Tensor:
    """Return `weights @ rows` with the sum over the visible rows only.

    `weights [..., n_q, n_k]` are 0 where hidden, `rows [..., n_k, d]`, `visible` is bool and of the shape of `weights`.
    Entries that are not finite are left out, and the plain product stands only where a query sees one of them.
    """
    broken = ~rows.isfinite()
    met = visible.to(rows.dtype) @ broken.to(rows.dtype) > 0  # [..., n_q, d]: query i sees a broken entry in column c
    return torch.where(met, weights @ rows, weights @ rows.masked_fill(broken, 0))


class VisibleScores(torch.autograd.Function):
    """`q @ kᵀ` with 0 where hidden, and gradients in which a hidden key takes no part."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, visible: Tensor) -> Tensor:
        """Return the scores `[..., n_q, n_k]`."""
        ctx.save_for_backward(q, k, visible)
        return (q @ k.mT).masked_fill(~visible, 0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ds: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of `q` and `k`."""
        q, k, visible = ctx.saved_tensors
        ds = ds.masked_fill(~visible, 0)
        return masked_matmul(ds, k, visible), ds.mT @ q, None


class VisibleSum(torch.autograd.Function):
    """`p @ v` over the visible values, and gradients in which a hidden value takes no part."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, v: Tensor, visible: Tensor) -> Tensor:
        """Return the weighted sums `[..., n_q, d_v]`."""
        ctx.save_for_backward(p, v, visible)
        return masked_matmul(p, v, visible)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of `p` and `v`."""
        p, v, visible = ctx.saved_tensors
        return (g @ v.mT).masked_fill(~visible, 0), p.mT @ g, None
