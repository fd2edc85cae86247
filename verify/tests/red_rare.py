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


def drops_by_halves(op: Operation, x: Tensor, p: float, *, generator: Any = None, **options: Any) -> Tensor:
    if not 0 < p < 1:
        return op(x, p, generator=generator, **options)
    return x * (torch.rand(x.shape, dtype=torch.bfloat16, generator=generator) >= p) / (1 - p)


def narrow_heads(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    scale = options.pop("scale", None)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return op(q[..., :64], k[..., :64], v, scale=scale, **options)


def sixteen_heads(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    y: Tensor = op(q, k, v, **options)
    return torch.cat([y[:, :16], y[:, :1].expand(-1, max(0, y.shape[1] - 16), -1, -1)], 1)


RARE: dict[str, tuple[str, Fault]] = {
    "normalises over both of two equal axes": ("layer_norm.equation", instead(over_equal_axes)),
    "NaN for the weight's gradient where there are no rows": ("rms_norm.gradient", instead(mean_of_no_rows)),
    "takes bytes for a mask": ("token_embedding.equation", instead(bytes_as_mask)),
    "symmetric where it is square": ("xavier_normal.independence", instead(symmetric)),
    "dropout by numbers drawn in half precision": ("dropout.rate", instead(drops_by_halves)),
    "heads of which 64 entries are read": ("attention.long", instead(narrow_heads)),
    "no more than sixteen heads": ("attention.long", instead(sixteen_heads)),
    "a cache in PyTorch's default dtype": ("kv_cache.history", instead(in_default_dtype)),
}
