"""Updates of half-precision parameters are computed in float32 and rounded once, when they are written."""

import torch
from torch import Tensor

from veriformer.impl.precision import upcast


def fp32_copies(tensors: list[Tensor]) -> list[Tensor]:
    """Return the tensors in their accumulation dtype: themselves where that is their own."""
    return [upcast(x) for x in tensors]


def copy_back(params: list[Tensor], wide: list[Tensor]) -> None:
    """Write the updated copies back into the parameters that have copies."""
    if wide[0] is not params[0]:
        torch._foreach_copy_(params, wide)
