"""PyTorch's attention by one of its kernels: the backends of ``scaled_dot_product_attention``, and FlexAttention.

``sdpa_kernel`` is given the formula beside a fused kernel, for calls that the kernel does not take.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, noop_mask

from veriformer.verify.targets.argument_validation import AttentionOptions, with_validation
from veriformer.verify.targets.torch_functional import attention_mask, scaled_dot_product


def _by(*backends: SDPBackend) -> SimpleNamespace:
    def attention(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
        with sdpa_kernel(list(backends)):
            return scaled_dot_product(q, k, v, o)

    return with_validation(attention=attention)


def _flex(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Call the higher-order operator itself: on a CPU ``flex_attention`` refuses tensors that require gradients."""
    if o.training and o.dropout_p:
        raise NotImplementedError("FlexAttention has no dropout")
    mask, cap = attention_mask(q, k, o), o.softcap
    n_q, n_k = q.shape[2], k.shape[2]
    spread = () if mask is None else (mask.expand(*q.shape[:3], n_k),)

    def change(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor, *masks: Tensor) -> Tensor:
        s = s if cap is None else cap * torch.tanh(s / cap)
        for m in masks:
            s = torch.where(m[b, h, i, j], s, -torch.inf) if m.dtype == torch.bool else s + m[b, h, i, j]
        return s

    everything = create_block_mask(noop_mask, 1, 1, n_q, n_k, device=q.device).as_tuple()
    scale = q.shape[3] ** -0.5 if o.scale is None else o.scale
    found: Tensor = torch.ops.higher_order.flex_attention(q, k, v, change, everything, scale, {}, spread, ())[0]
    return found


MATH, FLASH = _by(SDPBackend.MATH), _by(SDPBackend.FLASH_ATTENTION, SDPBackend.MATH)
FLEX = with_validation(attention=_flex)
for _name, _target in (("math", MATH), ("flash", FLASH), ("flex", FLEX)):
    _target.__name__ = f"torch.nn.attention:{_name}"
