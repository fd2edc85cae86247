"""The linear map x W + b."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix in the blocks in which oneDNN reads it: for a few rows, its product takes half as long.

    `blocks [n_out, n_in]` are a tensor that nothing but its operators reads. It has no gradient.
    """

    blocks: Tensor

    @classmethod
    def of(cls, W: Tensor) -> "PackedMatrix":
        """Pack `W [n_in, n_out]`."""
        return cls(torch.ops.mkldnn._reorder_linear_weight(W.detach().mT.contiguous()))

    @staticmethod
    def takes(W: Tensor) -> bool:
        """Return whether a matrix can be packed: in float32, on a CPU for which PyTorch has oneDNN."""
        has_library: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        return W.dtype == torch.float32 and W.is_cpu and has_library


def linear(x: Tensor, W: Tensor | PackedMatrix, b: Tensor | None = None) -> Tensor:
    """Return `x W + b` for `x [..., n_in]`, `W [n_in, n_out]`, `b [n_out]`."""
    if isinstance(W, PackedMatrix):
        return _closed_packed_linear(x, W.blocks, b)  # type: ignore[no-any-return]
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


def _packed_linear(x: Tensor, blocks: Tensor, b: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, blocks, b, "none", [], "")  # type: ignore[no-any-return]


# The compiler knows this operator only with matrices that it has packed itself.
_closed_packed_linear = torch.library.custom_op("veriformer::packed_linear", _packed_linear, mutates_args=())


@_closed_packed_linear.register_fake
def _(x: Tensor, blocks: Tensor, b: Tensor | None) -> Tensor:
    return x.new_empty(*x.shape[:-1], blocks.shape[0])


def _reads_matrix_once(x: Tensor, W: Tensor) -> bool:
    """Return whether a product is that of one row, in float32 on a CPU, by a column-major matrix."""
    plain = x.dtype == W.dtype == torch.float32 and x.is_cpu and not torch.is_autocast_enabled("cpu")
    return plain and x.numel() == x.shape[-1] and W.mT.is_contiguous() and not torch.is_grad_enabled()
