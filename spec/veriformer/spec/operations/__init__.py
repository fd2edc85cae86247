"""Operations of the contract as records, one file per area: what is told of a call is told here, and derived."""

from __future__ import annotations

from collections.abc import Mapping

from veriformer.spec.operations import attention, generation, layers, optimization, positions, scores
from veriformer.spec.operations.call import Operation

AREAS: Mapping[str, tuple[Operation, ...]] = {
    "scores": scores.OPERATIONS,
    "layers": layers.OPERATIONS,
    "attention": attention.OPERATIONS,
    "positions": positions.OPERATIONS,
    "optimization": optimization.OPERATIONS,
    "generation": generation.OPERATIONS,
}
"""Records of each area, in the contract's order."""

OPERATIONS: Mapping[str, Operation] = {one.name: one for area in AREAS.values() for one in area}
"""Record of every operation, in the contract's order."""
