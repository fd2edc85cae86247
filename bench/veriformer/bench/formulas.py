"""FLOPs of operators from their sizes: matrix products only, a multiply-add is 2.

PyTorch's own formulas first. Its counter takes a product that it has no formula for as free, in silence: products that
accumulate in place are among these, and the fused attention kernels of the CPU. They get their formula here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.utils import flop_counter
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten

Sizes = Sequence[int]

# PyTorch leaves these without types.
_on_shapes: Callable[..., Any] = flop_counter.shape_wrapper
_SDPA_FORWARD: Callable[..., Any] = flop_counter.sdpa_flop_count
_SDPA_BACKWARD: Callable[..., Any] = flop_counter.sdpa_backward_flop_count


def _accumulated(c: Sizes, a: Sizes, b: Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """c + a b, for matrices, batches of them, or a matrix and a vector."""
    return _product(a, b)


def _product(a: Sizes, b: Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """a b: every element of a meets every column of b; a vector is one column."""
    return 2 * prod(a) * (b[-1] if len(b) > 1 else 1)


def _linear(x: Sizes, weight: Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """x Wᵀ, with a bias and an activation in the same kernel."""
    return 2 * prod(x) * weight[0]


_FORMULAS = {
    **dict.fromkeys((aten.addmm_, aten.baddbmm_, aten.addbmm, aten.addbmm_, aten.addmv, aten.addmv_), _accumulated),
    **dict.fromkeys((aten.mv, aten.dot, aten.vdot), _product),
    torch.ops.mkldnn._linear_pointwise: _linear,
}


def _fused_forward(q: Sizes, k: Sizes, v: Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    return int(_SDPA_FORWARD(q, _heads(k, q), _heads(v, q)))


def _fused_backward(g: Sizes, q: Sizes, k: Sizes, v: Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    return int(_SDPA_BACKWARD(g, q, _heads(k, q), _heads(v, q)))


def _heads(k: Sizes, q: Sizes) -> Sizes:
    """The shape of keys that every query head reads: groups share memory, not work."""
    return (*k[:1], q[1], *k[2:])


_MODELLED = {
    aten._scaled_dot_product_flash_attention_for_cpu: _on_shapes(_fused_forward),
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _on_shapes(_fused_backward),
}
"""The fused kernels of the CPU, free to PyTorch's counter: its formula for those of a GPU says what they do.

Not where a mask is causal: whether a kernel leaves out what is hidden, the dispatcher cannot see.
"""


def formula(packet: Any) -> Callable[..., int] | None:
    """FLOPs of an operator from its arguments and `out_val`, or None where there is no formula."""
    own = _MODELLED.get(packet) or _OWN.get(packet)
    return own or flop_registry.get(packet)


def is_modelled(packet: Any) -> bool:
    """Return whether the FLOPs of an operator follow a formula that models the inside of its kernel."""
    return packet in _MODELLED or "attention" in packet.__name__


def is_product(packet: Any) -> bool:
    """Return whether an operator multiplies matrices, by its name."""
    return packet in _FORMULAS or bool(_PRODUCT.search(packet.__name__))


_OWN = {packet: _on_shapes(count) for packet, count in _FORMULAS.items()}
_PRODUCT = re.compile(r"attention|mm(_|$)|mv_?$|(^|_)v?dot$|linear|matmul|conv")
