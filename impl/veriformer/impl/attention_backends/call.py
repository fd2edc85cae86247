"""A call of attention after its arguments have been checked: what every backend computes from."""

from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.masks import band
from veriformer.impl.precision import accumulation_dtype


@dataclass
class Call:
    """The arguments of attention, in one form.

    `mask` and `bias` have rank 4, each axis full or 1, and `bias` has the accumulation dtype; `dropout_p` is 0 unless
    training; `is_causal` is False where it would hide nothing. `trusted` says that every query sees a key, and that
    hidden keys and values are as finite as the others, so that no time is spent on looking: a model knows this.
    Nobody changes a call; it is not frozen because that would take longer, in every layer and for every token.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    bias: Tensor | None
    is_causal: bool
    window: int | None
    scale: float
    softcap: float | None
    dropout_p: float
    generator: torch.Generator | None = None
    trusted: bool = False

    @property
    def shift(self) -> int:
        """Offset of a query's position from its index, n_k − n_q: the last query is at the last key."""
        return self.k.shape[2] - self.q.shape[2]

    @property
    def group(self) -> int:
        """Number of query heads per key head, H / G."""
        return self.q.shape[1] // self.k.shape[1]

    def visible(self) -> Tensor | None:
        """Return which query sees which key, bool `[B or 1, H or 1, n_q or 1, n_k or 1]`; None means all of them."""
        if not self.is_causal:
            return self.mask
        n_q, n_k = self.q.shape[2], self.k.shape[2]
        seen = band((0, n_q), (0, n_k), self.shift, self.window, self.q.device)[None, None]
        return seen if self.mask is None else seen & self.mask

    def poisoned(self) -> bool:
        """Tell whether hidden keys or values may be NaN, ∞, or so large that a product with them is.

        A weight of zero does not remove those from a sum. `ordinary` is the square root of the largest number.
        """
        if self.trusted or (self.mask is None and not self.is_causal):
            return False
        ordinary = torch.finfo(accumulation_dtype(self.k.dtype)).max ** 0.5
        return any(
            checks.can_read_values(x) and not bool((x.detach().abs() < ordinary).all()) for x in (self.k, self.v)
        )
