"""Tiles of our attention kernels on this GPU: sought from those of the table on, each checked before it is timed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from veriformer.bench.gpu_attention import Setting, interleaved, run_of, spread, verify
from veriformer.bench.targets import triton_attention

KERNELS = ("forward", "to_queries", "to_keys")
"""Kernels that are tuned: of the output, of the gradient of queries, of those of keys and values."""

SIDES, WARPS, STAGES = (16, 32, 64, 128), (4, 8), (1, 2, 3, 4)
LENGTH, ROUNDS = 4096, 6

Rate = Callable[[Any], float]
"""TFLOP/s of a kernel in given tiles; 0 where it is wrong, or does not run."""


@dataclass(frozen=True)
class Tuned:
    """Fastest tiles of a kernel: its rate in them and in those of the table, and the number of tiles tried."""

    kernel: str
    blocks: Any
    tflops: float
    before: float
    tried: int


def climb(start: Any, rate: Rate) -> tuple[Any, dict[Any, float]]:
    """Go from tiles to the fastest of their neighbours while that is faster; return the last ones, and all rates."""
    best, rates = start, {start: rate(start)}
    while True:
        near = list(neighbours(best))
        rates |= {blocks: rate(blocks) for blocks in near if blocks not in rates}
        fastest = max(near, key=rates.__getitem__)
        if rates[fastest] <= rates[best]:
            return best, rates
        best = fastest


def neighbours(blocks: Any) -> Iterator[Any]:
    """Yield tiles that differ in one number by one step."""
    for name, steps in (("rows", SIDES), ("cols", SIDES), ("warps", WARPS), ("stages", STAGES)):
        at = steps.index(getattr(blocks, name))
        for other in steps[max(at - 1, 0) : at] + steps[at + 1 : at + 2]:
            yield replace(blocks, **{name: other})


def tune(width: int, dtype: str) -> Iterator[Tuned]:
    """Yield the fastest tiles of each kernel for heads of a width, full attention over 4 096 tokens."""
    module = _launch_module()
    shared = module.shared_memory(torch.device("cuda"))
    launch = module.launch(width, getattr(torch, dtype), False, shared)
    for kernel in KERNELS:
        start = getattr(launch, kernel)
        blocks, rates = climb(start, partial(_rate, launch, kernel, width, dtype))
        launch = replace(launch, **{kernel: blocks})
        yield Tuned(kernel, blocks, rates[blocks], rates[start], len(rates))


def _rate(launch: Any, kernel: str, width: int, dtype: str, blocks: Any) -> float:
    passes = "forward" if kernel == "forward" else "backward"
    setting = Setting(n=LENGTH, d=width, is_causal=False, passes=passes, dtype=dtype)
    attend, device = triton_attention(), torch.device("cuda")
    with launched(replace(launch, **{kernel: blocks})):
        try:
            verify(attend, width=width, dtype=getattr(torch, dtype), is_causal=False, device=device)
            seconds, _ = spread(interleaved({"": run_of(attend, setting)}, rounds=ROUNDS)[""])
        except Exception:  # wrong, or beyond what the card has: no tiles to launch
            return 0.0
    return setting.flops / seconds / 1e12


@contextmanager
def launched(launch: Any) -> Iterator[None]:
    """Launch all kernels in given tiles."""
    module = _launch_module()
    tables = module.TABLES
    module.TABLES = (module.Tiles(shared=0, measured=None, halves={module.MAX_WIDTH: launch}),)
    try:
        yield
    finally:
        module.TABLES = tables


def _launch_module() -> Any:
    return importlib.import_module("veriformer.impl.attention_backends.flash.launch")
