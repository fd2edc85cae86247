"""Label smoothing as a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np

from veriformer.spec.layers.smooth_labels import smooth_labels
from veriformer.verify.operation import Index, Operation, Refusal
from veriformer.verify.operations.losses import classes, ids
from veriformer.verify.strategies import choice, leading_shapes, long_shapes, seeds, sizes
from veriformer.verify.trial import Arguments, Trial


def _smooth(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [smooth_labels(xp, a["target"], a["num_classes"], a["alpha"])]


def _blended(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """(1 − α) y + α u with the uniform row u = 1 / V formed first."""
    hit = (a["target"][..., None] == np.arange(a["num_classes"])).astype(np.float64)
    alpha, u = xp.asarray(a["alpha"]), xp.asarray(1.0) / a["num_classes"]
    return [(1 - alpha) * xp.asarray(hit) + alpha * u]


def draw_smoothing(trial: Trial, least_rank: int = 0) -> Arguments:
    """Targets of rank up to 3, from one class up, with no, some and nothing but smoothing."""
    lead, V = trial.draw(leading_shapes(3)), trial.draw(choice(3, 2, 5, 7, 1, 131))
    lead = lead if len(lead) >= least_rank else (2,) * least_rank
    rng = np.random.default_rng(trial.draw(seeds()))
    alpha = trial.draw(choice(0.1, 0.0, 1.0, 0.375, 0.5, 0.9, 1 / 3))
    return {"target": ids(classes(rng, lead, V)), "num_classes": V, "alpha": alpha}


def _ordinary(trial: Trial) -> Arguments:
    return {"target": ids(np.array([[2, 0, 1], [1, 1, 2]])), "num_classes": 3, "alpha": 0.25}


def _long(trial: Trial) -> Arguments:
    n, V = trial.draw(long_shapes())
    return {"target": ids(classes(np.random.default_rng(trial.draw(seeds())), (n,), V)), "num_classes": V, "alpha": 0.1}


def _slice(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    whole = draw_smoothing(trial, least_rank=1)
    i = trial.draw(st.integers(0, whole["target"].shape[0] - 1))
    return whole, {**whole, "target": whole["target"][i : i + 1]}, {"result": (slice(i, i + 1),)}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    V = trial.draw(sizes(2))
    target = np.arange(V)
    a: Arguments = {"target": ids(target), "num_classes": V, "alpha": 0.25}
    return a, {"target": {**a, "target": ids((target + 1) % V)}, "alpha": {**a, "alpha": 0.5}}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    V = trial.draw(sizes(2))
    good: Arguments = {"target": ids(np.arange(V)), "num_classes": V, "alpha": 0.1}
    yield Refusal("no target", {**good, "target": None}, ("target",))
    yield Refusal("a class too high", {**good, "target": ids(np.array([0, V]))}, ("target",))
    yield Refusal("a negative class", {**good, "target": ids(np.array([0, -1]))}, ("target",))
    yield Refusal("no classes", {**good, "num_classes": 0}, ("num_classes", "target"))
    yield Refusal("a negative number of classes", {**good, "num_classes": -V}, ("num_classes", "target"))
    yield Refusal("a bool for a number of classes", {**good, "num_classes": True}, ("num_classes",))
    for alpha, what in ((-0.1, "below 0"), (1.1, "above 1"), (math.nan, "NaN"), (True, "a bool"), (None, "missing")):
        yield Refusal(f"smoothing that is {what}", {**good, "alpha": alpha}, ("alpha",))


SMOOTH_LABELS = Operation(
    name="smooth_labels",
    draw=draw_smoothing,
    ordinary=_ordinary,
    formulas=(_smooth, _blended),
    refusals=_refusals,
    part=_slice,
    changes=_changes,
    long=_long,
    forms=("fp32", "bf16"),
    sharp=False,
)
