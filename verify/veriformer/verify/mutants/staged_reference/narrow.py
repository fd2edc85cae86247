"""Lower precision inside a model: everything under autocast, layers in a half, or keys and values kept in one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from veriformer.verify.mutants.staged_reference.model import Attention, Block, KVCache, Scene, Shape


class Autocast:
    """Everything under autocast, which touches fp32 alone: what promises fp64 computes in it."""

    inner: torch.dtype

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = False,
        labels: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Any:
        """Run under autocast; logits in fp32."""
        with torch.autocast("cpu", self.inner):
            output = super().forward(ids, attention_mask, past_key_values, use_cache, labels, documents)  # type: ignore[misc]
        output.logits = output.logits.float()
        return output


class InHalf:
    """Every layer with weights and activations in a half."""

    inner: torch.dtype

    def gradient_checkpointing_enable(self) -> None:
        """Keep all activations: the call has no effect."""

    def through(self, blocks: Any, x: Tensor, scene: Scene) -> Tensor:
        """Apply layer after layer, each cast to the inner dtype."""
        return super().through([Cast(block, self.inner) for block in blocks], x, scene)  # type: ignore[misc,no-any-return]


class Cast:
    """A layer in another dtype."""

    def __init__(self, block: nn.Module, dtype: torch.dtype) -> None:
        self.block, self.dtype = block, dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self.block, name)

    def __call__(self, x: Tensor, scene: Scene, layer: int) -> Tensor:
        """Return the layer's result, in the dtype of its input."""
        weights = {name: p.to(self.dtype) for name, p in self.block.named_parameters()}
        found: Tensor = functional_call(self.block, weights, (x.to(self.dtype), scene, layer))
        return found.to(x.dtype)


class NarrowKVCache(KVCache):
    """Keys and values are kept in bf16."""

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Extend through bf16."""
        found = super().extend(layer, k.to(torch.bfloat16), v.to(torch.bfloat16))
        return found[0].to(k.dtype), found[1].to(v.dtype)


class NarrowKeys(Attention):
    """Keys and values go through bf16, with a cache and without."""

    def forward(self, x: Tensor, source: Tensor, scene: Scene, layer: int | None) -> Tensor:
        """Attend over keys and values rounded to bf16."""
        kv_cache = NarrowKVCache() if scene.kv_cache is None else scene.kv_cache
        if scene.kv_cache is None:
            scene = replace(scene, kv_cache=kv_cache)
        kv_cache.__class__ = NarrowKVCache
        return super().forward(x, source, scene, layer)


class NarrowKeysBlock(Block):
    """A layer with such keys and values."""

    def __init__(self, s: Shape, *, cross: bool) -> None:
        super().__init__(s, cross=cross)
        self.attention = NarrowKeys(s)
