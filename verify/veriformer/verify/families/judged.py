"""Operations with numerical references in the spec, of results and of gradients."""

from __future__ import annotations

from veriformer.verify.operations.registry import OPERATIONS

JUDGED = tuple(operation for operation in OPERATIONS if operation.formulas)
"""Operations whose result the spec gives as numbers."""


DIFFERENTIABLE = tuple(operation for operation in OPERATIONS if operation.vjps)
"""Operations whose gradient the spec knows."""
