"""Sweeps: one size of a family of calls grows, all others are fixed; and the growth that the specification predicts."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from scipy import optimize, stats

from veriformer.bench.operations.family import Family
from veriformer.bench.timing.workloads import SIZES, family
from veriformer.spec.costs import symbol

FLOPS, MOVED, STEPS = "FLOPs", "least bytes", "bytes of every step"
COPY = "a copy of the least bytes"
_WIDTH = 4


def predicted_costs(family: Family, sizes: Sequence[Mapping[str, int]], *, backward: bool) -> dict[str, list[float]]:
    """Return costs by name at several sizes; costs that are zero everywhere are left out."""
    known = family.costs
    flops = (known.total or known.flops) if backward else known.flops
    steps = [cost for cost in (known.moved, known.others, known.extra) if cost is not None]
    said = {FLOPS: [flops] if flops else [], MOVED: [known.moved] if known.moved else [], STEPS: steps}
    found = {name: [sum(_at(cost(), s) for cost in parts) for s in sizes] for name, parts in said.items() if parts}
    return {name: values for name, values in found.items() if all(value > 0 for value in values)}


def band(costs: Mapping[str, Sequence[float]], values: Sequence[int]) -> tuple[float, float]:
    """Return the smallest and the largest elasticity that any of the costs has over these values.

    Where work, traffic and steps grow differently, the one that governs the time depends on the machine.
    """
    slopes = [float(stats.theilslopes(list(map(log, cost)), list(map(log, values))).slope) for cost in costs.values()]
    return min(slopes), max(slopes)


def fit(costs: Mapping[str, Sequence[float]], seconds: Sequence[float]) -> dict[str, float]:
    """Fit nonnegative seconds per unit of each cost and per call, relative errors of all sizes weighted equally."""
    names = [*costs, "call"]
    columns = np.array([*costs.values(), [1.0] * len(seconds)], dtype=np.float64).T / np.asarray(seconds)[:, None]
    scale = np.abs(columns).max(axis=0)
    found, _ = optimize.nnls(columns / scale, np.ones(len(seconds)))
    return {name: float(x / s) for name, x, s in zip(names, found, scale, strict=True)}


def _at(cost: Any, sizes: Mapping[str, int]) -> float:
    letters = {symbol(name): value for name, value in sizes.items()}
    value = cost.subs({**letters, symbol("w"): _WIDTH}) if hasattr(cost, "subs") else cost
    return float(value)


@dataclass(frozen=True)
class Sweep:
    """letters: the sizes of the family that take the value of the one that grows; start: its first value."""

    operation: str
    case: str
    size: str
    letters: tuple[str, ...]
    backward: bool = False
    start: int = 16

    @property
    def family(self) -> Family:
        """Return the family of calls."""
        return family(self.operation, self.case)

    @property
    def name(self) -> str:
        """Operation, passes, and the size that grows."""
        passes = "forward and backward" if self.backward else "forward"
        return f"{self.operation} over {self.size}, {passes}"

    def sizes(self, value: int) -> dict[str, int]:
        """Return all sizes of a call."""
        fixed = {letter: _SMALL.get(letter, SIZES[letter]) for letter in self.family.letters.split()}
        return {**fixed, **dict.fromkeys(self.letters, value)}

    def request(self, value: int) -> Mapping[str, object]:
        """Return the worker's request for this call."""
        return {
            "workload": f"{self.name} {value}",
            "family": [self.operation, self.case],
            "backward": self.backward,
            "sizes": self.sizes(value),
        }

    def costs(self, values: Sequence[int]) -> dict[str, list[float]]:
        """Return the predicted costs for each value: FLOPs, least bytes, and bytes of every step by itself."""
        return predicted_costs(self.family, [self.sizes(value) for value in values], backward=self.backward)


# What is fixed is small, so that the size that grows soon governs the work.
_SMALL = {"B": 1, "H": 2, "G": 1, "R": 2, "d": 64, "f": 128, "N": 256, "n": 64, "V": 512}
_DENSE = "a key head for each head"


def _both(operation: str, size: str, *letters: str, case: str = "all sizes", start: int = 16) -> list[Sweep]:
    known = letters or (size,)
    return [Sweep(operation, case, size, known, backward, start) for backward in (False, True)]


SWEEPS: tuple[Sweep, ...] = (
    *_both("attention", "n", "n_q", "n_k", case=_DENSE, start=32),
    *_both("attention", "d", case=_DENSE),
    *_both("attention", "H", case=_DENSE, start=2),
    *_both("linear_attention", "n", start=64),
    Sweep("cached_attention", "one new token", "t", ("t",), start=64),
    *_both("multi_head_attention", "n", start=32),
    *_both("feed_forward", "N"),
    *_both("feed_forward", "d"),
    *_both("swiglu", "N"),
    *_both("transformer_block", "n", start=32),
    *_both("transformer_block", "B", start=1),
    *_both("cross_entropy", "N"),
    *_both("cross_entropy", "V", "d", start=64),
    *_both("lm_head", "V", start=64),
    *_both("rms_norm", "N"),
    *_both("layer_norm", "N"),
    *_both("softmax", "d", start=64),
    *(Sweep(name, "a step", "P", ("P",), start=4096) for name in ("gradient_descent", "sgd_momentum", "adam", "adamw")),
    Sweep("clip_grad_norm", "all sizes", "N", ("N",)),
)


def chosen(patterns: Sequence[str]) -> list[Sweep]:
    """Return the sweeps that a pattern names, an operation or a glob; all of them where there is none."""
    return [s for s in SWEEPS if not patterns or any(s.operation == p or fnmatch.fnmatch(s.name, p) for p in patterns)]
