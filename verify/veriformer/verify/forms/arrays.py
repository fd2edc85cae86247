"""Tensors as arrays of NumPy, and arrays as tensors."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.form import NotOffered


def array_of(x: Any) -> Any:
    """Return a tensor as an array in the same memory, so that an array that is changed shows; else x itself.

    Raises NotOffered for bf16.
    """
    if not isinstance(x, Tensor):
        return x
    if x.dtype == torch.bfloat16:
        raise NotOffered("bf16: NumPy has no such format")
    return x.detach().numpy()


def tensor_of(x: Any, widest: torch.dtype | None = None) -> Any:
    """Return an array as a tensor; else x itself. widest: the dtype of what a constant has widened to float64.

    A constant such as numpy.sqrt(2) is a float64, by which NumPy widens every array: that is its own rule.
    """
    numpy = importlib.import_module("numpy")
    if not isinstance(x, numpy.ndarray | numpy.generic):
        return x
    found = torch.from_numpy(numpy.asarray(x))
    return found if widest is None or found.dtype is not torch.float64 else found.to(widest)


def widest_of(given: Iterable[Any]) -> torch.dtype | None:
    """Return the widest floating-point dtype of the tensors among what is given; None where there is none."""
    floating = [x.dtype for x in given if isinstance(x, Tensor) and x.is_floating_point()]
    return max(floating, key=lambda dtype: dtype.itemsize, default=None)
