"""Modules in another dtype, whose tables of complex numbers stay such."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

_Module = TypeVar("_Module", bound=nn.Module)


def in_dtype(module: _Module, dtype: torch.dtype) -> _Module:
    """Return a module with all its numbers in a dtype: ``Module.to`` would drop the imaginary parts of complex ones."""
    pairs = torch.complex128 if dtype == torch.float64 else torch.complex64

    def converted(x: Tensor) -> Tensor:
        if x.is_complex():
            return x.to(pairs)
        return x.to(dtype) if x.is_floating_point() else x

    module._apply(converted)  # type: ignore[no-untyped-call]
    return module
