"""Attentions that run on a GPU, each by one kind of kernel and no other, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from veriformer.bench.targets import triton_attention

Attend = Callable[..., torch.Tensor]
"""Called with q, k, v `[B, H, n, d]` and `is_causal`."""


@dataclass(frozen=True)
class AttentionKernel:
    """An attention under a name; the first call of `attend` may compile."""

    name: str
    attend: Attend


def attention_kernels() -> tuple[AttentionKernel, ...]:
    """All of them, ours first."""
    kinds = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)
    names = ("sdpa flash", "sdpa cudnn", "sdpa efficient")
    theirs = [AttentionKernel(name, partial(_by_kernel, kind)) for name, kind in zip(names, kinds, strict=True)]
    return (AttentionKernel("triton", triton_attention()), *theirs, AttentionKernel("flex", _flex))


def _by_kernel(kind: SDPBackend, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, is_causal: bool) -> torch.Tensor:
    with sdpa_kernel(kind):
        return scaled_dot_product_attention(q, k, v, is_causal=is_causal)


SHAPES = 256
"""Shapes that FlexAttention is compiled for. Beyond PyTorch's limit of 8 it would compute the formula, unnoticed."""


def _flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, is_causal: bool) -> torch.Tensor:
    attend, causal_blocks = _compiled_flex()
    blocks = causal_blocks(q.shape[2]) if is_causal else None
    with torch._dynamo.config.patch(recompile_limit=SHAPES, fail_on_recompile_limit_hit=True):
        return attend(q, k, v, block_mask=blocks)  # type: ignore[no-any-return]


@cache
def _compiled_flex() -> tuple[Any, Any]:
    """FlexAttention without a compiler would be the formula; blocks of its mask are made once for each length."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i >= j

    return torch.compile(flex_attention, dynamic=False), cache(lambda n: create_block_mask(causal, None, None, n, n))
