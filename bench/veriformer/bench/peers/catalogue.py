"""Sizes of the compared models, and the cases that ship, by the names that the command line takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriformer.spec import costs
from veriformer.spec.blocks import costs_model
from veriformer.spec.suggestion import meant

if TYPE_CHECKING:
    from veriformer.bench.document import Peer
    from veriformer.bench.peers.turns import Case, Schedule


_BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """A decoder in GPT-2's form, and a batch of texts for it."""

    layers: int
    width: int
    heads: int
    length: int = 256
    batch: int
    vocabulary: int = 65  # the characters of a text in English
    dtype: str = "float32"  # of the weights that decode; training in a half is that of autocast

    @property
    def tokens(self) -> int:
        """Return the number of tokens in a batch."""
        return self.batch * self.length

    @property
    def parameters(self) -> int:
        """Return the number of learned parameters."""
        return int(costs.evaluate(costs_model.parameters(), **self._letters))

    @property
    def training_flops(self) -> int:
        """Return the FLOPs of forward and backward on a batch, hidden scores left out."""
        return self.batch * int(costs.evaluate(3 * costs_model.causal_flops(), **self._letters))

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of the weights that a decoding step has to read."""
        return int(costs.evaluate(costs_model.step_bytes() - costs_model.cache_bytes(), **self._letters))

    def with_batch(self, batch: int) -> Sizes:
        """Return these sizes with another batch."""
        return replace(self, batch=batch)

    @property
    def _letters(self) -> dict[str, Any]:
        sizes = {"L": self.layers, "d": self.width, "H": self.heads, "V": self.vocabulary}
        return {**sizes, "n": self.length, "c": self.length, "w": _BYTES[self.dtype]}


ROWS = {"N": 2048, "d": 768}
SMALL = Sizes(layers=4, width=128, heads=4, batch=8)
MIDDLE = Sizes(layers=6, width=384, heads=6, batch=4)
MANY_CLASSES = Sizes(layers=4, width=128, heads=4, batch=8, vocabulary=50_257)
GPT2 = Sizes(layers=12, width=768, heads=12, length=1024, batch=16, vocabulary=50_304, dtype="bfloat16")

_MAKERS: dict[str, tuple[str, Any]] = {
    "training-128": ("eager", SMALL),
    "training-384": ("eager", MIDDLE),
    "compiled-128": ("compiled", SMALL),
    "compiled-384": ("compiled", MIDDLE),
    "vocabulary": ("chunked", MANY_CLASSES),
    "decode-1": ("cached", MIDDLE.with_batch(1)),
    "decode-8": ("cached", MIDDLE.with_batch(8)),
    "prefill-1": ("prefill", MIDDLE.with_batch(1)),
    "prefill-8": ("prefill", MIDDLE.with_batch(8)),
    "rowwise": ("rowwise", ROWS),
    "tiled": ("tiled", (1, 6, 2048, 64)),
    "adamw": ("adamw", MIDDLE),
}
_ON_GPU: dict[str, tuple[str, Any]] = {
    "training-768": ("eager", GPT2),
    "compiled-768": ("compiled", GPT2),
    "decode-768-1": ("cached", GPT2.with_batch(1)),
    "decode-768-8": ("cached", GPT2.with_batch(8)),
    "decode-768-64": ("cached", GPT2.with_batch(64)),
    "prefill-768-8": ("prefill", GPT2.with_batch(8)),
    "adamw-768": ("adamw", GPT2),
}


def _made(name: str, maker: str, sizes: Any, schedule: Schedule) -> Iterator[Peer]:
    """Give the records of a case; what makes them imports PyTorch and is therefore imported now."""
    yield from getattr(import_module("veriformer.bench.peers.cases"), maker)(name, sizes, schedule)


CASES: dict[str, Case] = {name: partial(_made, name, *maker) for name, maker in (_MAKERS | _ON_GPU).items()}


def cases_of(device: str) -> tuple[str, ...]:
    """Return the names of the cases that are run where none is named: of GPT-2's own size on a GPU."""
    on_gpu = device.startswith("cuda")
    return tuple(name for name in CASES if (name in _ON_GPU) == on_gpu)


class UnknownCaseError(ValueError):
    """No such case; the message lists those there are."""


def find(name: str) -> Case:
    """Return the case of that name. Raises UnknownCaseError."""
    if name not in CASES:
        raise UnknownCaseError(f"case {name!r}{meant(name, CASES)}: expected one of {', '.join(CASES)}")
    return CASES[name]
