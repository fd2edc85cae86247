"""The cases that ship, by the names that the command line takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriformer.bench.peers.sizes import Sizes
from veriformer.spec.suggestion import meant

if TYPE_CHECKING:
    from veriformer.bench.document import Peer
    from veriformer.bench.peers.case import Case, Schedule

ROWS = {"N": 2048, "d": 768}
SMALL = Sizes(layers=4, width=128, heads=4, batch=8)
MIDDLE = Sizes(layers=6, width=384, heads=6, batch=4)
MANY_CLASSES = Sizes(layers=4, width=128, heads=4, batch=8, vocabulary=50_257)
GPT2 = Sizes(layers=12, width=768, heads=12, length=1024, batch=16, vocabulary=50_304, dtype="bfloat16")

_MAKERS: dict[str, tuple[str, str, Any]] = {
    "training-128": ("training", "eager", SMALL),
    "training-384": ("training", "eager", MIDDLE),
    "compiled-128": ("training", "compiled", SMALL),
    "compiled-384": ("training", "compiled", MIDDLE),
    "vocabulary": ("vocabulary", "chunked", MANY_CLASSES),
    "decode-1": ("decoding", "cached", MIDDLE.with_batch(1)),
    "decode-8": ("decoding", "cached", MIDDLE.with_batch(8)),
    "prefill-1": ("prefill", "prompt", MIDDLE.with_batch(1)),
    "prefill-8": ("prefill", "prompt", MIDDLE.with_batch(8)),
    "rowwise": ("operations", "rowwise", ROWS),
    "tiled": ("tiles", "tiled", (1, 6, 2048, 64)),
    "adamw": ("optimizer", "adamw", MIDDLE),
}
_ON_GPU: dict[str, tuple[str, str, Any]] = {
    "training-768": ("training", "eager", GPT2),
    "compiled-768": ("training", "compiled", GPT2),
    "decode-768-1": ("decoding", "cached", GPT2.with_batch(1)),
    "decode-768-8": ("decoding", "cached", GPT2.with_batch(8)),
    "decode-768-64": ("decoding", "cached", GPT2.with_batch(64)),
    "prefill-768-8": ("prefill", "prompt", GPT2.with_batch(8)),
    "adamw-768": ("optimizer", "adamw", GPT2),
}


def _made(name: str, module: str, maker: str, sizes: Any, schedule: Schedule) -> Iterator[Peer]:
    """Give the records of a case, whose module imports PyTorch and is therefore imported now."""
    make = getattr(import_module(f"veriformer.bench.peers.{module}"), maker)
    yield from make(name, sizes, schedule)


CASES: dict[str, Case] = {name: partial(_made, name, *maker) for name, maker in (_MAKERS | _ON_GPU).items()}


def cases_of(device: str) -> tuple[str, ...]:
    """Return the names of the cases that are run where none is named: of GPT-2's own size on a GPU."""
    on_gpu = device.startswith("cuda")
    return tuple(name for name in CASES if (name in _ON_GPU) == on_gpu)


class UnknownCaseError(ValueError):
    """No such case; the message lists those there are."""


def find(name: str) -> Case:
    """The case of that name. Raises UnknownCaseError."""
    if name not in CASES:
        raise UnknownCaseError(f"case {name!r}{meant(name, CASES)}: expected one of {', '.join(CASES)}")
    return CASES[name]
