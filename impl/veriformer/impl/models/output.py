"""What every model returns."""

from dataclasses import dataclass

from torch import Tensor

from veriformer.impl.models.memory import Memory


@dataclass
class Output:
    """Logits `[B, n, V]`, and, where a cache was asked for, what the next call continues from."""

    logits: Tensor
    past_key_values: Memory | None = None
