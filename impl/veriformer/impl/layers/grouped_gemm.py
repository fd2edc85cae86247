"""Products in which every row has the matrix of its group: how many rows a group has is known only from the data."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from veriformer.impl import checks
from veriformer.impl.derivatives import apply_autograd_function
from veriformer.impl.precision import uses_autocast


def grouped_linear(x: Tensor, W: Tensor, b: Tensor, counts: Tensor) -> Tensor:
    """Return `x_i W_e + b_e` for each row `i`, where `e` is its group.

    Shapes: `x [M, n_in]` with the rows of the first group first, `W [E, n_in, n_out]`, `b [E, n_out]`,
    `counts [E] int64`, the number of rows of each group, → `[M, n_out]`. Autocast converts as for any product.
    """
    return apply_autograd_function(_GroupedLinear, _autocast(x), _autocast(W), _autocast(b), counts)


def _autocast(x: Tensor) -> Tensor:
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if uses_autocast(kind) and x.dtype != torch.float64 else x


class _GroupedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, b: Tensor, counts: Tensor) -> Tensor:
        ctx.save_for_backward(x, W, counts)
        o: Tensor = _of(x, _products, _closed_products)(x, W, b, counts)
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, W, counts = ctx.saved_tensors
        dx = _of(x, _products, _closed_products)(g, W.mT, None, counts) if ctx.needs_input_grad[0] else None
        dW, db = _of(x, _weight_gradients, _closed_weight_gradients)(x, g, counts)
        return dx, dW, db, None


def _of(x: Tensor, plain: Any, closed: Any) -> Any:
    """Choose between a function and the same as an operator, into which a compiler need not look to know its shape."""
    return plain if checks.can_read_values(x) else closed


def _products(x: Tensor, W: Tensor, b: Tensor | None, counts: Tensor) -> Tensor:
    biases = [None] * len(W) if b is None else b.unbind()
    groups = zip(x.split_with_sizes(counts.tolist()), W.unbind(), biases, strict=True)
    parts = [_linear(x_e, W_e, b_e) for x_e, W_e, b_e in groups if len(x_e)]
    return torch.cat(parts) if parts else x.new_empty(0, W.shape[2])


def _linear(x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    return x @ W if b is None else torch.addmm(b, x, W)


def _weight_gradients(x: Tensor, g: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of the matrices and of what is added, for the cotangent `g [M, n_out]`."""
    sizes = counts.tolist()
    groups = list(zip(x.split_with_sizes(sizes), g.split_with_sizes(sizes), strict=True))
    dW = torch.stack([_linear(x_e.mT, g_e, None) for x_e, g_e in groups])
    return dW, torch.stack([g_e.sum(0) for _, g_e in groups])


_closed_products = torch.library.custom_op("veriformer::grouped_products", _products, mutates_args=())
_closed_weight_gradients = torch.library.custom_op(
    "veriformer::grouped_weight_gradients", _weight_gradients, mutates_args=()
)


@_closed_products.register_fake
def _(x: Tensor, W: Tensor, b: Tensor | None, counts: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], W.shape[2])


@_closed_weight_gradients.register_fake
def _(x: Tensor, g: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    E, n_out = counts.shape[0], g.shape[1]
    return x.new_empty(E, x.shape[1], n_out), x.new_empty(E, n_out)
