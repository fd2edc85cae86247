"""Gradients of a result for a given cotangent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class _Contracted(torch.autograd.Function):
    """Scalar whose backward pass gives the result exactly the cotangent, as that of ⟨result, cotangent⟩ does."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, cotangent: torch.Tensor) -> torch.Tensor:
        """Return a placeholder 0 that the result's gradient depends on."""
        ctx.cotangent = cotangent
        return result.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the cotangent, with its strides."""
        return ctx.cotangent, None


def gradients(
    result: torch.Tensor, leaves: Sequence[torch.Tensor], cotangent: torch.Tensor, *, retain_graph: bool = False
) -> tuple[torch.Tensor, ...]:
    """Return ``torch.autograd.grad(result, leaves, cotangent)``, with zeros for unused leaves.

    Given a cotangent, that function loads SymPy to compare shapes that may be symbolic: seconds in every process, of
    which a run has several. From a number without one it does not.
    """
    number = _Contracted.apply(result, cotangent)  # type: ignore[no-untyped-call]
    return torch.autograd.grad(number, leaves, retain_graph=retain_graph, allow_unused=True, materialize_grads=True)
