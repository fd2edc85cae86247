"""Output of every model."""

from dataclasses import dataclass

from torch import Tensor

from veriformer.impl.models.kv_cache import KVCache


@dataclass
class Output:
    """Logits `[B, n, V]`, and, where a cache was asked for, what the next call continues from."""

    logits: Tensor
    past_key_values: KVCache | None = None
