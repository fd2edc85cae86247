"""The linear map x W + b."""

import torch
from torch import Tensor
from torch.nn import functional as F


def linear(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Return `x W + b` for `x [..., n_in]`, `W [n_in, n_out]`, `b [n_out]`."""
    if torch.compiler.is_compiling() and _reads_matrix_once(x, W):
        return gemv_compiled(x, W, b)
    y = F.linear(without_gaps(x), W.mT, b)
    if y.requires_grad and y.dtype is torch.bfloat16 and not torch.compiler.is_compiling():
        # of what comes back, the backward pass makes products, too
        y.register_hook(without_gaps)  # type: ignore[no-untyped-call]
    return y


def without_gaps(x: Tensor) -> Tensor:
    """Return `x`, in bfloat16 on a CPU without room between its rows.

    Matrix units take pairs of numbers: of a row of odd length they read the number behind it, too, times a zero of
    their own, and where that is NaN or infinite so is the result (oneDNN in PyTorch 2.13).
    """
    return x.contiguous() if x.dtype is torch.bfloat16 and x.is_cpu else x


def gemv_compiled(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Return `x W + b` for a single row `x [..., n_in]` and a column-major `W`, as sums for the compiler to write out.

    A row times a matrix takes as long as the reading of the matrix. The compiler's loop reads it at the speed of
    memory, while the call of a library costs as much as a small matrix.
    """
    y = (x.reshape(-1) * W.mT).sum(-1).view(*x.shape[:-1], -1)
    return y if b is None else y + b


def _reads_matrix_once(x: Tensor, W: Tensor) -> bool:
    """Return whether a product is that of one row, in float32 on a CPU, by a column-major matrix."""
    plain = x.dtype == W.dtype == torch.float32 and x.is_cpu and not torch.is_autocast_enabled("cpu")
    return plain and x.numel() == x.shape[-1] and W.mT.is_contiguous() and not torch.is_grad_enabled()
