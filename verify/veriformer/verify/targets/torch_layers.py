"""PyTorch's layers: one call each of ``torch.nn.functional`` or ``torch.nn.init``."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.targets.seeding import seeded


def _mse_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """PyTorch's mean is over entries, the contract's over vectors."""
    return F.mse_loss(prediction, target, reduction="none").sum(-1).mean()


def _gelu(x: Tensor, approximate: str) -> Tensor:
    return F.gelu(x, approximate=approximate)


def _dropout(x: Tensor, p: float, training: bool, generator: torch.Generator | None) -> Tensor:
    with seeded(generator if training else None):
        return F.dropout(x, float(p), training)


def _xavier_normal(n_in: int, n_out: int, generator: torch.Generator | None) -> Tensor:
    return torch.nn.init.xavier_normal_(torch.empty(n_in, n_out), generator=generator)


def _token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    """PyTorch takes ids of 32 and 64 bits."""
    return F.embedding(ids if ids.dtype in (torch.int32, torch.int64) else ids.long(), weight)


def _lm_head(h: Tensor, weight: Tensor) -> Tensor:
    return F.linear(h, weight)


RAW_OPS: dict[str, Any] = {
    "mse_loss": _mse_loss,
    "gelu": _gelu,
    "silu": F.silu,
    "dropout": _dropout,
    "xavier_normal": _xavier_normal,
    "token_embedding": _token_embedding,
    "lm_head": _lm_head,
}
"""By the contract's names."""
