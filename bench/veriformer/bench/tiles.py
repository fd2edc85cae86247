"""Search for the fastest tiles of our attention kernels on a GPU.

Each kernel is timed by itself: the forward pass, or the gradient of what alone asks for one. Tiles with a wrong
result, or larger than the card's shared memory, are not timed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import torch

from veriformer.bench.gpu_attention import Setting, WrongError, first_line, interleaved, spread, verify
from veriformer.bench.targets import triton_attention

_PRODUCTS = {"forward": 2, "to_queries": 3, "to_keys": 4, "to_bias": 2}
KERNELS = tuple(_PRODUCTS)
"""Kernels that are tuned: of the output, and of the gradients of queries, of keys and values, and of a bias."""

SIDES, WARPS, STAGES = (16, 32, 64, 128), (4, 8), (1, 2, 3, 4)
LENGTH, ROUNDS = 4096, 6
_DEVICE = torch.device("cuda")

Speed = Callable[[Any], float]
"""TFLOP/s of a kernel in given tiles; 0 where it is wrong, or does not run."""


@dataclass(frozen=True)
class Tried:
    """Rate of a kernel in some tiles, in TFLOP/s; None, with the reason, where it is wrong or did not run."""

    width: int
    kernel: str
    blocks: Any
    tflops: float | None
    reason: str | None = None
    wrong: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return a plain record."""
        return asdict(self)

    def __str__(self) -> str:
        without_rate = f"{'WRONG' if self.wrong else 'not timed'} ({self.reason})"
        said = without_rate if self.tflops is None else f"{self.tflops:.0f} TFLOP/s"
        return f"{self.width} {self.kernel} {written(self.blocks)}: {said}"


def climb(start: Any, rate: Speed) -> tuple[Any, dict[Any, float]]:
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


def tune(width: int, dtype: str, found: Callable[[Tried], object]) -> None:
    """Search the tiles of each kernel for heads of a width, in full attention over 4 096 tokens, and report each try.

    Where the tiles of the table do not run on the card, the search begins at those of the smallest card. Raises
    RuntimeError where no kernel can run.
    """
    triton_attention()
    launch = launches(width)
    for kernel in KERNELS:
        rate = cache(partial(_reported_rate, launch, kernel, width, dtype, found))
        starts = (getattr(launch, kernel), getattr(launch_module().TABLES[-1].halves[_class_of(width)], kernel))
        start = next((blocks for blocks in starts if rate(blocks) > 0), starts[0])
        launch = replace(launch, **{kernel: climb(start, rate)[0]})


def launches(width: int) -> Any:
    """Return the tiles that the table has for this card."""
    module = launch_module()
    return module.launch(width, torch.bfloat16, False, module.shared_memory(_DEVICE))


def fastest(tried: Iterable[Tried]) -> dict[int, Any]:
    """Return by width the tiles of all kernels: the fastest that were tried, and the table's where none was timed."""
    best: dict[tuple[int, str], Tried] = {}
    for one in tried:
        before = best.get((one.width, one.kernel))
        if one.tflops is not None and (before is None or one.tflops > (before.tflops or 0)):
            best[one.width, one.kernel] = one
    found: dict[int, Any] = {}
    for (width, kernel), one in sorted(best.items()):
        found[width] = replace(found.get(width, launches(width)), **{kernel: one.blocks})
    return found


def written(blocks: Any) -> str:
    """Write tiles as in the table."""
    return f"Blocks({blocks.rows}, {blocks.cols}, {blocks.warps}, {blocks.stages})"


def table(tuned: dict[int, Any], measured: str) -> str:
    """Write a card's entry for the table: tiles by class of widths, those of the table where a class was not tuned."""
    module = launch_module()
    classes = {_class_of(width): launch for width, launch in tuned.items()}
    rows = []
    for most in module.TABLES[0].halves:
        launch = classes.get(most, launches(most))
        rows.append(f"        {most}: Launch({', '.join(written(getattr(launch, kernel)) for kernel in KERNELS)}),")
    widths = ", ".join(map(str, sorted(tuned)))
    head = f"Tiles(\n    shared={module.shared_memory(_DEVICE):_},\n    measured={f'{measured}: widths {widths}'!r},\n"
    return "\n".join((f"{head}    halves={{", *rows, "    },\n)"))


def _class_of(width: int) -> int:
    """Return the width of the row of the table that heads of a width are launched by."""
    classes: Iterable[int] = launch_module().TABLES[0].halves
    return next(most for most in classes if width <= most)


def _reported_rate(
    launch: Any, kernel: str, width: int, dtype: str, found: Callable[[Tried], object], blocks: Any
) -> float:
    try:
        one = Tried(width, kernel, blocks, rate(replace(launch, **{kernel: blocks}), kernel, width, dtype))
    except Exception as error:  # beyond what the card has, or wrong
        one = Tried(width, kernel, blocks, None, first_line(error), isinstance(error, WrongError))
    found(one)
    return one.tflops or 0.0


def rate(launch: Any, kernel: str, width: int, dtype: str) -> float:
    """Return the TFLOP/s of a kernel, judged in full and in causal attention. Raises WrongError and Triton's errors."""
    setting = Setting(n=LENGTH, d=width, is_causal=False, passes="forward", dtype=dtype)
    attend = triton_attention()
    with launched(launch):
        for is_causal in (False, True):
            verify(
                attend, width=width, dtype=getattr(torch, dtype), is_causal=is_causal, device=_DEVICE,
                biased=kernel == "to_bias",
            )  # fmt: skip
        seconds, _ = spread(interleaved({"": _run_of(attend, kernel, setting)}, rounds=ROUNDS)[""])
    return setting.flops * _PRODUCTS[kernel] / 2 / seconds / 1e12


def _run_of(attend: Callable[..., torch.Tensor], kernel: str, setting: Setting) -> Callable[[], object]:
    """Return a run of one kernel; those of gradients are preceded by the products of each row."""
    shape, dtype = (*setting.sizes.values(), setting.n, setting.d), getattr(torch, setting.dtype)
    q, k, v, g = (torch.randn(shape, device=_DEVICE, dtype=dtype) for _ in range(4))
    options = {"bias": torch.randn(1, 1, setting.n, setting.n, device=_DEVICE)} if kernel == "to_bias" else {}
    wanted: Sequence[torch.Tensor] = {"to_queries": (q,), "to_keys": (k, v)}.get(kernel, tuple(options.values()))
    for x in wanted:
        x.requires_grad_()
    if kernel == "forward":
        return lambda: attend(q, k, v, is_causal=False)
    o = attend(q, k, v, is_causal=False, **options)
    return lambda: torch.autograd.grad(o, wanted, g, retain_graph=True)


@contextmanager
def launched(launch: Any) -> Iterator[None]:
    """Launch all kernels in given tiles."""
    module = launch_module()
    tables = module.TABLES
    module.TABLES = (module.Tiles(shared=0, measured=None, halves={module.MAX_WIDTH: launch}),)
    try:
        yield
    finally:
        module.TABLES = tables


def launch_module() -> Any:
    """Return the module of the table."""
    return importlib.import_module("veriformer.impl.attention_backends.flash.launch")


def triton_version() -> str:
    """Return the version of Triton, which comes under several names of a package, or "none"."""
    try:
        return str(importlib.import_module("triton").__version__)
    except ImportError:
        return "none"
