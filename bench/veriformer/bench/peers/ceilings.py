"""What this processor can do at best, measured in the same race: one large product, and one reading of memory."""

from __future__ import annotations

import torch

from veriformer.bench.peers.race import Run

_SIDE = 1024
PRODUCT = "matrix product"


def product_flops() -> int:
    """FLOPs of `product`."""
    return 2 * _SIDE**3


def product() -> Run:
    """A product of two square matrices that fit into the cache."""
    a, b, out = (torch.randn(_SIDE, _SIDE) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


def reading(bytes_: int) -> Run:
    """Read so many bytes once, for a sum of squares."""
    x = torch.randn(bytes_ // 4)
    return lambda: torch.dot(x, x)
