"""Scaling record of one size, as ``benchmarks.json`` keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from veriformer.bench.verdicts import Verdict


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Growth of the time of one operation of a target with one size.

    predicted: the band of elasticities ∂ log t / ∂ log size of the specification's costs. elasticity, interval:
    measured, with one-sided bounds of 2.5 %. points: size and seconds, the median of each process. fit: seconds per
    unit of each cost.
    """

    target: str
    operation: str
    name: str
    size: str
    passes: str
    verdict: Verdict
    reason: str
    predicted: list[float] | None = None
    elasticity: float | None = None
    interval: list[float] | None = None
    sizes: list[int]
    seconds: list[list[float]]
    fit: dict[str, float]
    fixed: dict[str, int]

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Scaling:
        """The record of one entry of ``scalings``."""
        return cls(**{**entry, "verdict": Verdict(entry["verdict"])})
