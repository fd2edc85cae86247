"""The operations whose results, and whose gradients, the spec gives as numbers."""

from __future__ import annotations

from veriformer.verify.operations.registry import OPERATIONS

JUDGED = tuple(operation for operation in OPERATIONS if operation.formulas)
"""The operations whose result the spec gives as numbers."""


DIFFERENTIABLE = tuple(operation for operation in OPERATIONS if operation.vjps)
"""The operations whose gradient the spec knows."""
