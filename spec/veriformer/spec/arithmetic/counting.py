"""Counting: float arithmetic that keeps count of what a formula does, to compare with what its costs say."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.float import Float


class Counting(Float):
    """Evaluate a formula in float64 and count: FLOPs of matrix products, and other operations, one for each entry.

    A reduction counts one for each entry that it reads; a product with ±1 and what only moves entries is free.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.others = 0
        self.reduced: list[int] = []
        """Number of results of each sum and each maximum."""

    def apply(self, operation: str, /, *operands: Any, **options: Any) -> Any:
        """Carry out an operation, and count it."""
        result = super().apply(operation, *operands, **options)
        first = self.asarray(operands[0]).value
        if operation == "matmul":
            self.flops += 2 * result.value.size * first.shape[-1]
        elif operation != "negative":
            self.others += first.size if operation in ("sum", "max") else result.value.size
            self.reduced += [result.value.size] if operation in ("sum", "max") else []
        return result
