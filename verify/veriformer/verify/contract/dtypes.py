"""The four floating-point formats under one name each: the record's name, PyTorch's dtype, the spec's format."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from veriformer.spec.arithmetic import FORMATS, Format
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Floats
from veriformer.verify.contract.formats import HALVES, NAMES, canonical

__all__ = ["CHOSEN", "DEFAULTED", "HALVES", "NAMES", "NUMBERS", "TORCH", "canonical", "default", "format_of"]

TORCH: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
DEFAULTED: frozenset[str] = frozenset(
    name for name, one in OPERATIONS.items() if one.result.axes is not None and not one.of_kind(Floats)
)
"""Operations whose results have PyTorch's default dtype, on the CPU, as no tensor argument determines it."""

NUMBERS: frozenset[str] = frozenset(name for name, one in OPERATIONS.items() if one.result.axes == "")
"""Operations with a scalar result, which may be a Python number: without a gradient, then."""

CHOSEN: frozenset[str] = DEFAULTED | NUMBERS
"""Operations whose result is a table or a scalar that ends a computation: its floating dtype is advice."""


def format_of(dtype: torch.dtype) -> Format:
    """Return the spec's format of a PyTorch dtype."""
    return FORMATS[canonical(str(dtype))]


@contextlib.contextmanager
def default(dtype: torch.dtype | None) -> Iterator[None]:
    """Set PyTorch's default dtype within the context; None leaves it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype or before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
