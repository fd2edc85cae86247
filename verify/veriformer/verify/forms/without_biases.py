"""A network of two layers without biases as one with them: an input and a hidden unit that are constant carry them."""

from __future__ import annotations

import torch
from torch import Tensor

from veriformer.verify.forms.form import NotOffered

HIDDEN, HIDDEN_DOUBLE = 32.0, 64.0
"""Values of the constant hidden unit, the second in double precision: ReLU, GELU and SiLU return them unchanged.

The cube of the first, which GELU by tanh takes, is finite in half precision.
"""

TOLD = "it has no biases: an input that is always 1 carries those that are asked for"


def widen_with_biases(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``x``, ``w1`` and ``w2``, each one wider, which without biases compute the network with biases.

    Raises NotOffered where the constants would not leave the numbers as they are.
    """
    constant = HIDDEN_DOUBLE if x.dtype is torch.float64 else HIDDEN
    share = b2 / constant
    if not bool(x.isfinite().all()) or not torch.equal(share * constant, b2):
        raise NotOffered("x, b2: numbers that the constants would change")
    ones, zeros = torch.ones_like(x[..., :1]), torch.zeros_like(w1[:, :1])
    carried = torch.cat((b1, b1.new_full((1,), constant)))
    wide = torch.cat((torch.cat((w1, zeros), 1), carried[None]))
    return torch.cat((x, ones), -1), wide, torch.cat((w2, share[None]))
