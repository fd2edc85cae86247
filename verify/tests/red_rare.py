"""Faults that only a rare input shows, which the draws therefore seek: by name the requirement that must see each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.red import Fault, Operation, WithGradient, instead


def over_equal_axes(op: Operation, x: Tensor, weight: Any = None, bias: Any = None, **options: Any) -> Tensor:
    if x.ndim < 2 or x.shape[-2] != x.shape[-1]:
        return op(x, weight, bias, **options)
    y = op(x.flatten(-2), **options).view(x.shape)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def mean_of_no_rows(op: Operation, x: Tensor, weight: Tensor | None = None, **options: Any) -> Tensor:
    if x.numel() or weight is None:
        return op(x, weight, **options)
    return op(x, WithGradient.apply(weight, lambda g: g / 0), **options)


def bytes_as_mask(op: Operation, ids: Tensor, weight: Tensor) -> Tensor:
    mask = ids.dtype == torch.uint8 and ids.shape == weight.shape[:1]
    return weight[ids.bool()] if mask else op(ids, weight)


def symmetric(op: Operation, n_in: int, n_out: int, **options: Any) -> Tensor:
    w: Tensor = op(n_in, n_out, **options)
    return torch.triu(w) + torch.triu(w, 1).mT if n_in == n_out else w


def in_default_dtype(op: Operation, *args: Any, dtype: torch.dtype | None = None, **options: Any) -> Any:
    return op(*args, dtype=dtype or torch.get_default_dtype(), **options)


RARE: dict[str, tuple[str, Fault]] = {
    "normalises over both of two equal axes": ("layer_norm.equation", instead(over_equal_axes)),
    "NaN for the weight's gradient where there are no rows": ("rms_norm.gradient", instead(mean_of_no_rows)),
    "takes bytes for a mask": ("token_embedding.equation", instead(bytes_as_mask)),
    "symmetric where it is square": ("xavier_normal.independence", instead(symmetric)),
    "a cache in PyTorch's default dtype": ("kv_cache.history", instead(in_default_dtype)),
}
