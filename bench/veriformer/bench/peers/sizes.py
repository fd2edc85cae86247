"""Sizes of the compared models, and their costs by the specification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from veriformer.spec import costs
from veriformer.spec.blocks import costs_model

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
        """Number of tokens in a batch."""
        return self.batch * self.length

    @property
    def parameters(self) -> int:
        """Number of learned parameters."""
        return int(costs.evaluate(costs_model.parameters(), **self._letters))

    @property
    def training_flops(self) -> int:
        """FLOPs of forward and backward on a batch, hidden scores left out."""
        return self.batch * int(costs.evaluate(3 * costs_model.causal_flops(), **self._letters))

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights that a decoding step has to read."""
        return int(costs.evaluate(costs_model.step_bytes() - costs_model.cache_bytes(), **self._letters))

    def with_batch(self, batch: int) -> Sizes:
        """Return these sizes with another batch."""
        return replace(self, batch=batch)

    @property
    def _letters(self) -> dict[str, Any]:
        sizes = {"L": self.layers, "d": self.width, "H": self.heads, "V": self.vocabulary}
        return {**sizes, "n": self.length, "c": self.length, "w": _BYTES[self.dtype]}
