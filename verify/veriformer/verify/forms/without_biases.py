"""A network of two layers without biases as one with them: an input and a hidden unit that are constant carry them."""

from __future__ import annotations

import torch
from torch import Tensor

from veriformer.verify.forms.form import NotOffered

HIDDEN = 16.0
"""What the constant hidden unit holds: GELU, by tanh too, and ReLU give it back as it is, in every format."""

TOLD = "it has no biases: an input that is always 1 carries those that are asked for"


def widened(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``x``, ``w1`` and ``w2``, each one wider, so that the network without biases gives what that with them gives.

    Raises NotOffered where the constants would not leave the numbers as they are.
    """
    share = b2 / HIDDEN
    if not bool(x.isfinite().all()) or not torch.equal(share * HIDDEN, b2):
        raise NotOffered("x, b2: numbers that the constants would change")
    ones, zeros = torch.ones_like(x[..., :1]), torch.zeros_like(w1[:, :1])
    carried = torch.cat((b1, torch.full_like(b1[:1], HIDDEN))) if b1.numel() else b1.new_full((1,), HIDDEN)
    wide = torch.cat((torch.cat((w1, zeros), 1), carried[None]))
    return torch.cat((x, ones), -1), wide, torch.cat((w2, share[None]))
