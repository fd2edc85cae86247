"""The linear map x W + b, by the fastest library that PyTorch carries for this processor."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from veriformer.impl.derivatives import apply_autograd_function

ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def linear(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Return `x W + b` for `x [..., n_in]`, `W [n_in, n_out]`, `b [n_out]`."""
    if not uses_onednn(x, W):
        y = F.linear(without_gaps(x), W.mT, b)
        if y.requires_grad and y.dtype is torch.bfloat16 and not torch.compiler.is_compiling():
            # of what comes back, the backward pass makes products, too
            y.register_hook(without_gaps)  # type: ignore[no-untyped-call]
        return y
    if torch.compiler.is_compiling() and _reads_matrix_once(x, W):
        return gemv_compiled(x, W, b)
    if torch.is_grad_enabled() and (x.requires_grad or W.requires_grad or (b is not None and b.requires_grad)):
        return apply_autograd_function(_Linear, x.reshape(-1, x.shape[-1]), W, b).view(*x.shape[:-1], -1)
    return onednn_matmul(x, W, b)


def without_gaps(x: Tensor) -> Tensor:
    """Return `x`, in bfloat16 on a CPU without room between its rows.

    Matrix units take pairs of numbers: of a row of odd length they read the number behind it, too, times a zero of
    their own, and where that is NaN or infinite so is the result (oneDNN in PyTorch 2.13).
    """
    return x.contiguous() if x.dtype is torch.bfloat16 and x.is_cpu else x


def uses_onednn(x: Tensor, W: Tensor) -> bool:
    """Tell whether oneDNN should multiply: float32 on a CPU.

    PyTorch leaves those products to MKL, which on processors of other makers does without their widest instructions.
    Halves it gives to oneDNN itself, and float64 oneDNN does not know.
    """
    plain = x.dtype == W.dtype == torch.float32 and x.is_cpu and W.is_cpu
    return plain and x.numel() > 0 and W.numel() > 0 and ONEDNN and not torch.is_autocast_enabled("cpu")


def gemv_compiled(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Return `x W + b` for a single row `x [..., n_in]` and a column-major `W`, as sums for the compiler to write out.

    A row times a matrix takes as long as the reading of the matrix. The compiler's loop reads it at the speed of
    memory, while the call of a library costs as much as a small matrix.
    """
    y = (x.reshape(-1) * W.mT).sum(-1).view(*x.shape[:-1], -1)
    return y if b is None else y + b


def _reads_matrix_once(x: Tensor, W: Tensor) -> bool:
    return x.numel() == x.shape[-1] and W.mT.is_contiguous() and not torch.is_grad_enabled()


def onednn_matmul(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `a @ b + bias` of `a [..., n_in]` and a matrix `b` by oneDNN, without a graph.

    The compiler would pack the weights in its own way, which fails where they change: it may not look inside.
    """
    result: Tensor = (_opaque if torch.compiler.is_compiling() else _onednn)(a, b, bias)
    return result


def _onednn(a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
    bias = None if bias is None else bias.contiguous()  # of a bias, the library reads no strides
    result: Tensor = torch.ops.mkldnn._linear_pointwise.default(a, b.mT, bias, "none", [], "")
    return result


_opaque = torch.library.custom_op("veriformer::onednn_matmul", _onednn, mutates_args=())


@_opaque.register_fake
def _(a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
    return a.new_empty(*a.shape[:-1], b.shape[1])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, W)
        return onednn_matmul(x, W, b)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, W = ctx.saved_tensors
        needs_x, needs_W, needs_b = ctx.needs_input_grad
        g = g.contiguous()
        dx = linear(g, W.mT) if needs_x else None
        dW = linear(x.mT.contiguous(), g) if needs_W else None
        return dx, dW, g.sum(0) if needs_b else None
