"""FLOPs as ``torch.utils.flop_counter`` counts them: matrix products only, a multiply-add is 2, without a clock.

PyTorch's counter takes a product that it has no formula for as free, in silence: products that accumulate in place are
among these, and the fused attention kernels of the CPU. The first get their formula here; the others cannot be counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from veriformer.bench.calls import Attention, Shape, fake_call

aten = torch.ops.aten


class NotCountable(Exception):
    """This number cannot be had by counting; the message says why. Never to be read as zero."""


def count_flops(attention: Attention, shape: Shape, *, backward: bool) -> int:
    """FLOPs of the forward pass, or of both passes together.

    Raises NotCountable where a product is done in an operator that there is no formula for.
    """
    with (
        fake_call(shape, backward=backward) as call,
        FlopCounterMode(display=False, custom_mapping=_FORMULAS) as counter,
        _UncountedProducts() as uncounted,
    ):
        call.run(attention)
    if uncounted.names:
        names = " and ".join(sorted(uncounted.names))
        raise NotCountable(f"PyTorch computes it in {names}, for which its FLOP counter has no formula")
    return int(counter.get_total_flops())


Sizes = Sequence[int]


def _accumulated(c: Sizes, a: Sizes, b: Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """c + a b, for matrices, batches of them, or a matrix and a vector."""
    return _product(a, b)


def _product(a: Sizes, b: Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """a b: every element of a meets every column of b; a vector is one column."""
    return 2 * prod(a) * (b[-1] if len(b) > 1 else 1)


_FORMULAS = {
    **dict.fromkeys((aten.addmm_, aten.baddbmm_, aten.addbmm, aten.addbmm_, aten.addmv, aten.addmv_), _accumulated),
    **dict.fromkeys((aten.mv, aten.dot, aten.vdot), _product),
}

_PRODUCT = re.compile(r"attention|mm(_|$)|mv_?$|(^|_)v?dot$|(bi)?linear(_backward)?$|matmul|conv")


class _UncountedProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every product, by its name, that no formula counts."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet = func.overloadpacket
        if packet not in flop_registry and packet not in _FORMULAS and _PRODUCT.search(packet.__name__):
            self.names.add(str(packet))
        return func(*args, **(kwargs or {}))
