"""Comparison of two results of one call, and one result of both, by whose rows all are judged."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def nearly_equal(found: Tensor, expected: Tensor) -> bool:
    """Return whether two results agree in half of the digits of their dtype."""
    if found.shape != expected.shape or not bool(found.isfinite().all()):
        return False
    half = torch.finfo(found.dtype).eps ** 0.5
    return bool((found - expected).abs().max() <= half * expected.abs().max())


class _InterleavedRows(torch.autograd.Function):
    """Rows of several results in turn, or of numbers the one furthest from the first, with the gradients of that."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, *others: Tensor) -> Tensor:
        results = (whole, *others)
        if not whole.ndim:
            numbers = torch.stack(results)
            return numbers[(numbers - whole).abs().argmax()]
        rows = torch.stack([x.reshape(-1, x.shape[-1]) for x in results])
        turn = torch.arange(rows.shape[1])
        return rows[turn % len(results), turn].reshape(whole.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], *[None] * (len(ctx.needs_input_grad) - 1)


def interleave_rows(whole: Tensor, others: list[Tensor]) -> Tensor:
    """Return the rows of a result and of others that must equal it in turn, so that all are judged.

    Others of another shape or dtype are left out. Gradients are those of the first.
    """
    same = [x for x in others if x.shape == whole.shape and x.dtype == whole.dtype]
    found: Tensor = _InterleavedRows.apply(whole, *same)  # type: ignore[no-untyped-call]
    return found if same else whole
