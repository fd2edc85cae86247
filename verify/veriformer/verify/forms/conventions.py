"""Conventions of calls that several forms share: layouts of heads and kinds of masks."""

from __future__ import annotations

import torch
from torch import Tensor

LAYOUTS = ("[B,H,n,d]", "[B,n,H,d]")
MASKS = ("boolean", "0/1", "inverted", "additive")
"""True may attend; the same as integers; True is hidden; 0 where it may and −∞ where it may not."""


def are_opposite(one: str, other: str) -> bool:
    """Return whether of two kinds of masks one hides the entries that the other shows."""
    return (one == "inverted") != (other == "inverted")


def hides_some(mask: object) -> bool:
    """Return whether a mask hides some entries and not all: only such a mask shows its convention."""
    return isinstance(mask, Tensor) and bool((mask != 0).any()) and bool((mask == 0).any())


def laid_out(x: Tensor, layout: str) -> Tensor:
    """Convert between ``[B,H,n,d]`` and another layout, in either direction."""
    return x if layout == LAYOUTS[0] else x.transpose(1, 2)


def mask_as(mask: Tensor, kind: str, dtype: torch.dtype) -> Tensor:
    """Return a mask of the contract, True = may attend, as another kind."""
    if kind == "inverted":
        return ~mask
    if kind == "additive":
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)
    return mask.to(torch.int64) if kind == "0/1" else mask
