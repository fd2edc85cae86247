"""Updates of half-precision parameters are computed in float32 and rounded once, when they are written."""

import torch
from torch import Tensor

from veriformer.impl.precision import accumulation_dtype


def fp32_copies(tensors: list[Tensor]) -> list[Tensor]:
    """Return tensors of one dtype in their accumulation dtype, copied together: themselves where that is their own."""
    dtype = accumulation_dtype(tensors[0].dtype)
    if dtype == tensors[0].dtype:
        return tensors
    wide = [torch.empty_like(x, dtype=dtype) for x in tensors]
    torch._foreach_copy_(wide, tensors)
    return wide


def copy_back(params: list[Tensor], wide: list[Tensor]) -> None:
    """Write the updated copies back into the parameters that have copies."""
    if wide[0] is not params[0]:
        torch._foreach_copy_(params, wide)
