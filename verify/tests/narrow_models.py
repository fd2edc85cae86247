"""Not a test: language models that compute in lower precision inside, right ones and one with each of several faults.

``plain`` computes in the dtype of its parameters; ``bf16`` and ``fp16`` do so under autocast, which touches fp32
alone, so that they promise nothing in fp64; ``layers-bf16`` runs its layers in bf16 whatever its parameters have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.mutants.staged_reference.model import Decoder, Scene, Shape
from veriformer.verify.mutants.staged_reference.narrow import Autocast, InHalf, NarrowKeysBlock

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Faulty(Decoder):
    """layer: the one that is at fault; late: from which position on."""

    late = 0
    layer = 0

    def through(self, blocks: Any, x: Tensor, scene: Scene) -> Tensor:
        for layer, block in enumerate(blocks):
            seen = self.spoiled(scene) if layer == self.layer else scene
            x = self.recomputed(block, x, seen, layer) if self.checkpointing else block(x, seen, layer)
        return x

    def spoiled(self, scene: Scene) -> Scene:
        """Return the scene that the layer at fault is given."""
        return scene


class LooksAhead(Faulty):
    """A layer sees one token ahead, from a position on."""

    def spoiled(self, scene: Scene) -> Scene:
        n, m = scene.see.shape[-2:]
        i, j = torch.arange(m - n, m)[:, None], torch.arange(m)[None]
        return replace(scene, see=scene.see | ((j == i + 1) & (i >= self.late)))


class IgnoresMask(Faulty):
    """A layer sees padding."""

    def spoiled(self, scene: Scene) -> Scene:
        n, m = scene.see.shape[-2:]
        i, j = torch.arange(m - n, m)[:, None], torch.arange(m)[None]
        return replace(scene, see=scene.see | ((j <= i) & (i >= self.late)))


class CachedPositions(Faulty):
    """Whoever goes on from a cache is turned one position too far in one layer."""

    def spoiled(self, scene: Scene) -> Scene:
        n, m = scene.see.shape[-2:]
        return replace(scene, positions=scene.positions + int(m > n + self.late))


class CachedWindow(Faulty):
    """The window is one longer for whoever goes on from a cache, in one layer."""

    def spoiled(self, scene: Scene) -> Scene:
        n, m = scene.see.shape[-2:]
        i, j = torch.arange(m - n, m)[:, None], torch.arange(m)[None]
        more = (i - j == (self.s.window or 0)) & (j >= 0) & (i >= self.late)
        return replace(scene, see=scene.see | more) if m > n else scene


class FaintlyCached(CachedWindow):
    """The key beyond the window has a hundred-thousandth of a weight, far below what a half can tell."""

    def spoiled(self, scene: Scene) -> Scene:
        loud = super().spoiled(scene)
        more = (loud.see & ~scene.see)[0]
        bias = torch.where(more, -12.0, 0.0).expand(self.s.heads, -1, -1)
        return replace(loud, bias=bias) if loud is not scene else scene


class CachedNorm(Faulty):
    """A norm has another eps for whoever goes on from a cache."""

    def through(self, blocks: Any, x: Tensor, scene: Scene) -> Tensor:
        norm, cached = blocks[self.layer].norms[0], scene.see.shape[-1] > scene.see.shape[-2]
        norm.eps = 1e-6 if cached else 1e-5
        try:
            return super().through(blocks, x, scene)
        finally:
            norm.eps = 1e-5


class MixesRows(Faulty):
    """Attention of the first row leaks a little into the others."""

    def through(self, blocks: Any, x: Tensor, scene: Scene) -> Tensor:
        return super().through(blocks, x + 0.01 * x[:1].detach() * (len(x) > 1), scene)


def kind(fault: type[Faulty], inner: str) -> type[Decoder]:
    """The fault in a model that computes so inside."""
    if inner == "plain":
        return fault
    wrap = Autocast if inner in HALVES else InHalf
    return type(f"{fault.__name__}_{inner}", (wrap, fault), {"inner": HALVES[inner.removeprefix("layers-")]})


class KeepsNarrowKeys(Faulty):
    """Right: keys and values in bf16, everything else wide."""

    block = NarrowKeysBlock


FAULTS: Mapping[str, tuple[type[Faulty], Mapping[str, Any], str]] = {
    "leak": (LooksAhead, {}, "causality"),
    "leak-second-layer": (LooksAhead, {"layer": 1}, "causality"),
    "leak-late": (LooksAhead, {"late": 30}, "causality"),
    "leak-late-second": (LooksAhead, {"late": 40, "layer": 1}, "causality"),
    "padding": (IgnoresMask, {}, "padding"),
    "padding-second-layer": (IgnoresMask, {"layer": 1}, "padding"),
    "padding-late": (IgnoresMask, {"late": 20}, "padding"),
    "packing": (IgnoresMask, {}, "packing"),
    "packing-second-layer": (IgnoresMask, {"layer": 1}, "packing"),
    "positions": (CachedPositions, {}, "cache"),
    "positions-second-layer": (CachedPositions, {"layer": 1}, "cache"),
    "positions-late": (CachedPositions, {"late": 20}, "cache"),
    "window": (CachedWindow, {}, "cache"),
    "window-second-layer": (CachedWindow, {"layer": 1}, "cache"),
    "window-late": (CachedWindow, {"late": 30, "layer": 1}, "cache"),
    "window-faint": (FaintlyCached, {}, "cache"),
    "norm-eps": (CachedNorm, {}, "cache"),
    "norm-eps-second-layer": (CachedNorm, {"layer": 1}, "cache"),
    "rows": (MixesRows, {}, "batch"),
}
"""By name: the fault, where it sits, and the law that it breaks."""

INNER = ("plain", "bf16", "fp16", "layers-bf16")

LAWS: Mapping[str, tuple[str, ...]] = {
    "causality": ("causality", "prefix", "reach"),
    "padding": ("right_padding", "left_padding", "padding_content", "cache_padding"),
    "packing": ("packing",),
    "cache": ("cache_split", "cache_steps", "cache_padding"),
    "batch": ("batch",),
}


def target(fault: type[Faulty], inner: str, **more: Any) -> Any:
    """An implementation of ``causal_lm``; fp32 alone is promised, where fp64 would be computed otherwise."""
    made = type("Made", (kind(fault, inner),), more)

    def make() -> nn.Module:
        return made(Shape(position="rope", window=more.get("window")))

    claims = {"dtypes": ["fp32"]}
    return SimpleNamespace(causal_lm=make, CLAIMS=claims)


def faulty(name: str, inner: str) -> Any:
    """The implementation with this fault."""
    fault, more, _ = FAULTS[name]
    return target(fault, inner, **more, **({"window": 3} if issubclass(fault, CachedWindow) else {}))


RIGHT: Mapping[str, Callable[[], Any]] = {
    **{f"right-{inner}": lambda inner=inner: target(Faulty, inner) for inner in INNER},
    **{f"right-window-{inner}": lambda inner=inner: target(Faulty, inner, window=3) for inner in INNER},
    "right-narrow-keys": lambda: target(KeepsNarrowKeys, "plain"),
}
