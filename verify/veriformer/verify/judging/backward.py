"""Gradients of a result for a given cotangent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class _Contracted(torch.autograd.Function):
    """The product with a cotangent, as far as a backward pass sees it: what the result gets is the cotangent itself."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, cotangent: torch.Tensor) -> torch.Tensor:
        """A number of no meaning on which the result's gradient hangs."""
        ctx.cotangent = cotangent
        return result.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor, None]:
        """The cotangent, with its strides."""
        return ctx.cotangent, None


def gradients(
    result: torch.Tensor, leaves: Sequence[torch.Tensor], cotangent: torch.Tensor, *, retain_graph: bool = False
) -> tuple[torch.Tensor, ...]:
    """``torch.autograd.grad(result, leaves, cotangent)``; zeros where a leaf is not used.

    Given a cotangent, that function loads SymPy to compare shapes that may be symbolic: seconds in every process, of
    which a run has several. From a number without one it does not.
    """
    number = _Contracted.apply(result, cotangent)  # type: ignore[no-untyped-call]
    return torch.autograd.grad(number, leaves, retain_graph=retain_graph, allow_unused=True, materialize_grads=True)
