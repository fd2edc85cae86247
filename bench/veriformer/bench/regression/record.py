"""Regression record of one workload, as ``benchmarks.json`` keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from statistics import median
from typing import Any

from veriformer.bench.regression.measure import Plan, Series
from veriformer.bench.statistics.blocks import Change


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Regression of one workload between two arms.

    ratio: head / base. interval: what one-sided tests place it in; None where nothing was measured. seconds: the
    medians. turns: seconds of every turn, pair of processes by pair of processes.
    """

    workload: str
    base: str
    head: str
    verdict: Change
    reason: str
    ratio: float | None
    interval: list[float] | None
    seconds: dict[str, float]
    turns: dict[str, list[list[float]]]
    clock: str
    device: str
    fingerprint: str
    rejected: int = 0

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Regression:
        """The record of one entry of ``regressions``."""
        return cls(**{**entry, "verdict": Change(entry["verdict"])})

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``regressions``."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Level:
    """From this run of a history on, a workload takes `ratio` times as long as in the runs before."""

    start: int
    ratio: float


@dataclass(frozen=True, kw_only=True)
class History:
    """The times of one workload on one machine, oldest first, and where they settled on another level."""

    workload: str
    clock: str
    when: list[str]
    version: list[str]
    seconds: list[float]
    levels: list[Level]

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> History:
        """The record of one entry of ``histories``."""
        return cls(**{**entry, "levels": [Level(**one) for one in entry["levels"]]})


def record(series: Series, base: str, head: str, plan: Plan, fingerprint: str) -> Regression:
    """The record of a series."""
    found = series.judgement(plan.floors)
    measured = found.change is not Change.INVALID
    turns = {"base": [list(b.base) for b in series.blocks], "head": [list(b.head) for b in series.blocks]}
    return Regression(
        workload=series.workload,
        base=base,
        head=head,
        verdict=found.change,
        reason=found.reason,
        ratio=found.ratio if measured else None,
        interval=[x for x in found.interval if isfinite(x)] if measured else None,
        seconds={arm: median(median(t) for t in blocks) for arm, blocks in turns.items() if blocks},
        turns=turns,
        clock=plan.clock,
        device=plan.device,
        fingerprint=fingerprint,
        rejected=series.rejected,
    )
