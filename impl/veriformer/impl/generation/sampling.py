"""From logits to the next token: how the distribution is shaped, and how one is drawn from it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.generation.greedy import greedy
from veriformer.impl.generation.top_k import top_k_filter
from veriformer.impl.generation.top_p import top_p_filter
from veriformer.impl.precision import upcast


@dataclass(frozen=True)
class Sampling:
    """The distribution that tokens are drawn from: softmax(z / T) within the top k and the nucleus of mass p.

    The temperature comes first, then `top_k`, then `top_p` over what that left, as is usual. `temperature=0` is greedy:
    all mass on the largest logit. Raises `ValueError` or `TypeError` for values out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        checks.nonnegative("temperature", checks.finite("temperature", self.temperature))
        if self.top_k is not None:
            checks.integer("top_k", self.top_k, minimum=1)
        if self.top_p is not None:
            checks.probability("top_p", self.top_p)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the distribution `[..., V]`, halves in float32."""
        z = upcast(logits)
        if self.temperature == 0:
            return torch.zeros_like(z).scatter(-1, greedy(z)[..., None], 1)
        z = (z - z.amax(-1, keepdim=True)) / self.temperature  # nothing overflows, however small the temperature
        if self.top_k is not None:
            z = top_k_filter(z, self.top_k)
        if self.top_p is not None:
            z = top_p_filter(z, self.top_p)
        return z.softmax(-1)

    def draw(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw one token for each row of `logits [B, V]`: int64 `[B]`."""
        if self.temperature == 0:
            return greedy(logits)
        # As torch.multinomial draws one, but for its look at the sums, which waits for a GPU at every token.
        p = self.probabilities(logits)
        return (p / torch.empty_like(p).exponential_(generator=generator)).argmax(-1)


GREEDY = Sampling(temperature=0.0)

Choose = Callable[[Tensor], int]


def chooser(generator: torch.Generator | None) -> Choose:
    """Return a function that draws an index from probabilities `[V]`."""
    return lambda p: int(torch.multinomial(p, 1, generator=generator))
