"""The expected calibration error as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from veriformer.spec.generation.choices import exact_values, highest
from veriformer.spec.generation.expected_calibration_error import expected_calibration_error
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.operations.losses import classes, ids
from veriformer.verify.strategies import choice, leading_shapes, seeds, sizes
from veriformer.verify.trial import Arguments, Trial


def _error(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    options = {key: a[key] for key in ("num_bins",) if key in a}
    return [expected_calibration_error(xp, a["probs"], a["target"], **options)]


def _by_means(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Σ |B| / n · |acc − conf|, bin by bin, as it is printed."""
    chosen, M = highest(a["probs"]), int(a.get("num_bins", 15))
    confidence = xp.reshape(xp.take_along(a["probs"], chosen[..., None], -1), (chosen.size,))
    inner = exact_values(xp.asarray(np.arange(1, M) / M))
    place = np.asarray(inner < exact_values(confidence)[:, None], dtype=bool).sum(-1)
    hit = (chosen == a["target"]).ravel().astype(np.float64)
    out = xp.asarray(0.0)
    for m in np.unique(place):
        held = np.flatnonzero(place == m)
        accuracy, mean = xp.sum(xp.asarray(hit[held])) / held.size, xp.sum(confidence[held]) / held.size
        out = out + abs(accuracy - mean) * (xp.asarray(float(held.size)) / chosen.size)
    return [out]


def rows(rng: np.random.Generator, confidence: np.ndarray, classes_: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [..., V] with these as the largest, and where each of them stands."""
    chosen = rng.integers(0, classes_, confidence.shape)
    probs = 0.5 * confidence[..., None] * rng.random((*confidence.shape, classes_))
    np.put_along_axis(probs, chosen[..., None], confidence[..., None], -1)
    return probs, chosen


def sometimes_right(rng: np.random.Generator, chosen: np.ndarray, classes_: int) -> np.ndarray:
    """Targets of which about half are the chosen classes."""
    return np.where(rng.random(chosen.shape) < 0.5, chosen, classes(rng, chosen.shape, classes_))


def confidences(rng: np.random.Generator, shape: tuple[int, ...], bins: int) -> np.ndarray:
    """On a grid of sixteenths, edges among them, where every dtype holds the edges; else near the middle of bins.

    Of many bins they lie in neighbouring ones, which fewer bins would not tell apart.
    """
    if bins > 16:
        return np.asarray((rng.integers(0, bins - 2) + rng.integers(0, 4, shape)) / bins)
    if bins & (bins - 1) == 0:
        return np.asarray(rng.integers(0, 17, shape) / 16)
    middle = (rng.integers(0, bins, shape) + rng.uniform(0.3, 0.7, shape)) / bins
    return np.where(rng.random(shape) < 0.2, rng.integers(0, 2, shape), middle)


def draw_calibration(trial: Trial) -> Arguments:
    """Samples on any number of axes, bins of which some are empty, confidences of 0 and 1."""
    bins = trial.draw(choice(None, 2, None, 1, 4, None, 8, 10, 3, 7, 256))
    lead, V = trial.draw(leading_shapes(2, 7)), trial.draw(choice(3, 2, 4, 1))
    rng = np.random.default_rng(trial.draw(seeds()))
    probs, chosen = rows(rng, confidences(rng, lead or (1,), bins or 15), V)
    probs, chosen = (probs, chosen) if lead else (probs[0], chosen[0])
    options = {} if bins is None else {"num_bins": bins}
    return {"probs": trial.tensor(probs), "target": ids(sometimes_right(rng, np.asarray(chosen), V)), **options}


def _ordinary(trial: Trial) -> Arguments:
    n, rng = trial.draw(sizes(2)), np.random.default_rng(trial.draw(seeds()))
    probs, chosen = rows(rng, confidences(rng, (n,), 15), 3)
    return {"probs": trial.tensor(probs), "target": ids(sometimes_right(rng, chosen, 3))}


def _long(trial: Trial) -> Arguments:
    """More samples than a tile has room for, or more bins, or more classes."""
    n, bins, size = trial.draw(choice((1030, 15, 3), (300, 8, 2), (70, 128, 5), (4, 10, 1030)))
    rng = np.random.default_rng(trial.draw(seeds()))
    probs, chosen = rows(rng, confidences(rng, (n,), bins), size)
    return {"probs": trial.tensor(probs), "target": ids(sometimes_right(rng, chosen, size)), "num_bins": bins}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    probs = np.array([[0.875, 0.0], [0.25, 0.75], [0.375, 0.25]])
    a: Arguments = {"probs": trial.tensor(probs), "target": ids(np.array([0, 0, 0])), "num_bins": 4}
    probs[0, 0] = 0.5
    return a, {
        "probs": {**a, "probs": trial.tensor(probs)},
        "target": {**a, "target": ids(np.array([0, 1, 0]))},
        "num_bins": {**a, "num_bins": 1},
    }


def _refusals(trial: Trial) -> Iterator[Refusal]:
    good = _ordinary(trial)
    probs, target = good["probs"], good["target"]
    yield Refusal("no probabilities", {**good, "probs": None}, ("probs",))
    yield Refusal("no target", {**good, "target": None}, ("target",))
    yield Refusal("no sample", {"probs": probs[:0], "target": target[:0]}, ("probs", "target"))
    yield Refusal("no class", {"probs": probs[:, :0], "target": target}, ("probs", "target"))
    yield Refusal("too few targets", {"probs": probs, "target": target[1:]}, ("probs", "target"))
    yield Refusal("too many axes", {"probs": probs, "target": target[:, None]}, ("probs", "target"))
    yield Refusal("a probability above 1", {"probs": probs + 1.5, "target": target}, ("probs",))
    yield Refusal("a probability below 0", {"probs": probs - 1.5, "target": target}, ("probs",))
    for bins, what in ((0, "no bin"), (-3, "a negative number of bins"), (True, "a bool for a number of bins")):
        yield Refusal(what, {**good, "num_bins": bins}, ("num_bins",))


EXPECTED_CALIBRATION_ERROR = Operation(
    name="expected_calibration_error",
    draw=draw_calibration,
    ordinary=_ordinary,
    formulas=(_error, _by_means),
    refusals=_refusals,
    changes=_changes,
    long=_long,
    forms=("fp32", "bf16"),
    sharp=False,
)
