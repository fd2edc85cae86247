"""Growth of times that the specification predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from scipy import optimize, stats

from veriformer.bench.operations.family import Family
from veriformer.spec.costs import symbol

FLOPS, MOVED, STEPS = "FLOPs", "least bytes", "bytes of every step"
COPY = "a copy of the least bytes"
_WIDTH = 4


def predicted_costs(family: Family, sizes: Sequence[Mapping[str, int]], *, backward: bool) -> dict[str, list[float]]:
    """Costs by their names at several sizes; one that is zero everywhere is left out."""
    known = family.costs
    flops = (known.total or known.flops) if backward else known.flops
    steps = [cost for cost in (known.moved, known.others, known.extra) if cost is not None]
    said = {FLOPS: [flops] if flops else [], MOVED: [known.moved] if known.moved else [], STEPS: steps}
    found = {name: [sum(_at(cost(), s) for cost in parts) for s in sizes] for name, parts in said.items() if parts}
    return {name: values for name, values in found.items() if all(value > 0 for value in values)}


def band(costs: Mapping[str, Sequence[float]], values: Sequence[int]) -> tuple[float, float]:
    """The smallest and the largest elasticity that any of the costs has over these values.

    Where work, traffic and steps grow differently, the one that governs the time depends on the machine.
    """
    slopes = [float(stats.theilslopes(list(map(log, cost)), list(map(log, values))).slope) for cost in costs.values()]
    return min(slopes), max(slopes)


def fit(costs: Mapping[str, Sequence[float]], seconds: Sequence[float]) -> dict[str, float]:
    """Seconds per unit of each cost and per call, none of them negative, weighted so that each size counts the same."""
    names = [*costs, "call"]
    columns = np.array([*costs.values(), [1.0] * len(seconds)], dtype=np.float64).T / np.asarray(seconds)[:, None]
    scale = np.abs(columns).max(axis=0)
    found, _ = optimize.nnls(columns / scale, np.ones(len(seconds)))
    return {name: float(x / s) for name, x, s in zip(names, found, scale, strict=True)}


def _at(cost: Any, sizes: Mapping[str, int]) -> float:
    letters = {symbol(name): value for name, value in sizes.items()}
    value = cost.subs({**letters, symbol("w"): _WIDTH}) if hasattr(cost, "subs") else cost
    return float(value)
