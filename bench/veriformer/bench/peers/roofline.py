"""Roofline of this processor, measured in the same turns: one large product, and one reading of memory."""

from __future__ import annotations

import torch

from veriformer.bench.peers.interleaved_benchmark import OURS, Run, interleaved_benchmark

_SIDE, _SIDE_ON_GPU = 1024, 8192
PRODUCT = "matrix product"


def product_flops() -> int:
    """FLOPs of `product`."""
    return 2 * (_SIDE_ON_GPU if torch.get_default_device().type == "cuda" else _SIDE) ** 3


def product() -> Run:
    """A product of two square matrices that fit into the cache, by the fastest library that PyTorch carries."""
    on_gpu = torch.get_default_device().type == "cuda"
    side, dtype = (_SIDE_ON_GPU, torch.bfloat16) if on_gpu else (_SIDE, torch.float32)
    a, b, out = (torch.randn(side, side, dtype=dtype) for _ in range(3))
    runs: list[Run] = [lambda: torch.mm(a, b, out=out)]
    if a.is_cpu and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        runs.append(lambda: torch.ops.mkldnn._linear_pointwise(a, b.mT, None, "none", [], ""))
    times = interleaved_benchmark({OURS: runs[0]} | {str(i): run for i, run in enumerate(runs)}, rounds=6)
    return min(enumerate(runs), key=lambda pair: times.of(str(pair[0])))[1]


def reading(bytes_: int) -> Run:
    """Read so many bytes once, for a sum of squares."""
    x = torch.randn(bytes_ // 4)
    return lambda: torch.dot(x, x)
