"""Scaling record of one size, as ``benchmarks.json`` keeps it and as a line, what refutes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from veriformer.bench.verdicts import Verdict, tally


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


_ORDER = (Verdict.REFUTED, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.CONFIRMED)


def ranked(found: Iterable[Scaling]) -> list[Scaling]:
    """Sort by verdict, what refutes first."""
    return sorted(found, key=lambda one: _ORDER.index(one.verdict))


def line(one: Scaling) -> str:
    """Format one sweep as one line."""
    span = f" for {one.size} = {one.sizes[0]} … {one.sizes[-1]}" if one.elasticity is not None else ""
    return f"{one.verdict.value:<12} {one.name}: {one.reason}{span}"


def summary(found: Sequence[Scaling]) -> str:
    """Return the number of sweeps by verdict, as text."""
    return ", ".join(tally(found, _ORDER)) or "nothing that could be timed"
