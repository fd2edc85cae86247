"""Attention: over all keys, in heads, linear, and of new tokens over a cache."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import torch
from torch import Tensor

from veriformer.verify.contract.objects import Cache


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout_p: float = 0.0,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Scaled dot-product attention: softmax(q kᵀ · scale + mask) v (20, 21, 22, 23, 24a, 46).

    In this order: scale, soft-cap, bias, mask, softmax, dropout, values. A window keeps the latest visible keys.
    """


def multi_head_attention(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    context: Tensor | None = None,
    attention_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    """Multi-head attention of x to context, or to itself (26, 27)."""


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, feature_map: str = "elu+1", is_causal: bool = False) -> Tensor:
    """Linear attention: φ(q) (φ(k)ᵀ v), normalised over the keys that a query sees (45)."""


def causal_mask(n_q: int, n_k: int, *, window: int | None = None) -> Tensor:
    """Causal mask, bool [n_q, n_k]: true where j ≤ i + n_k − n_q (24a)."""


def kv_cache(
    batch: int,
    num_kv_heads: int,
    max_length: int,
    head_dim: int,
    *,
    dtype: torch.dtype = torch.float32,
    quantization: str | None = None,
    window: int | None = None,
) -> Cache:
    """Empty key-value cache with update, length, reorder and reset; "int8" quantises it (42, 43)."""


def cached_attention(
    q_new: Tensor,
    k_new: Tensor,
    v_new: Tensor,
    cache: Cache,
    *,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Causal attention of new tokens over a cache, to which theirs are appended first (44)."""
