"""The expected calibration error: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.generation.choices import exact_values, highest
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import equal, finite
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores.targets import classes, ids
from veriformer.verify.strategies import choice, leading_shapes, seeds, sizes


def _by_means(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return Σ |B| / n · |acc − conf|, bin by bin, as it is printed."""
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
    """Draw probabilities [..., V] with these as the largest, some of the others 0, and where each of them stands."""
    chosen = rng.integers(0, classes_, confidence.shape)
    probs = 0.5 * confidence[..., None] * np.maximum(0.0, rng.uniform(-0.3, 1.0, (*confidence.shape, classes_)))
    np.put_along_axis(probs, chosen[..., None], confidence[..., None], -1)
    return probs, chosen


def sometimes_right(rng: np.random.Generator, chosen: np.ndarray, classes_: int) -> np.ndarray:
    """Draw targets of which about half are the chosen classes."""
    return np.where(rng.random(chosen.shape) < 0.5, chosen, classes(rng, chosen.shape, classes_))


def confidences(rng: np.random.Generator, shape: tuple[int, ...], bins: int) -> np.ndarray:
    """Draw confidences in sixteenths, edges among them, where every dtype holds the edges; else near bins' middles.

    Of many bins they lie in neighbouring ones, which fewer bins would merge.
    """
    if bins > 16 and bins & (bins - 1):
        return np.asarray((rng.integers(0, bins - 2) + rng.integers(0, 3, shape) + 0.5) / bins)
    if bins > 16:
        return np.asarray((rng.integers(0, bins - 2) + rng.integers(0, 4, shape)) / bins)
    if bins & (bins - 1) == 0:
        return np.asarray(rng.integers(0, 17, shape) / 16)
    middle = (rng.integers(0, bins, shape) + rng.uniform(0.3, 0.7, shape)) / bins
    return np.where(rng.random(shape) < 0.2, rng.integers(0, 2, shape), middle)


def _work(s: Mapping[str, int]) -> float:
    return s["rows"] * (s["classes"] + s["bins"])


def draw_calibration(trial: Trial) -> Arguments:
    """Draw samples on any number of axes, bins of which some are empty, confidences of 0 and 1."""
    bins = trial.draw(choice(None, 2, None, 1, 4, None, 8, 10, 3, 7, 256))
    most = 2 ** min(8, trial.format.precision - 2)  # of more bins the dtype does not tell the middles
    large = trial.sizes({"rows": (1, 20000), "classes": (1, 3000), "bins": (1, most)}, _work)
    lead, V = trial.draw(leading_shapes(2, 7)), trial.draw(choice(3, 2, 4, 1))
    if large is not None:
        lead, V, bins = trial.axes(large["rows"]), large["classes"], large["bins"]
    rng = np.random.default_rng(trial.draw(seeds()))
    probs, chosen = rows(rng, confidences(rng, lead or (1,), bins or 15), V)
    probs, chosen = (probs, chosen) if lead else (probs[0], chosen[0])
    options = {} if bins is None else {"num_bins": bins}
    if large and trial.draw(choice(True, False)):  # over- and underconfident by turns: what is put together cancels
        right = np.floor(probs.max(-1) * large["bins"]) % 2 == 0
        target = np.where(right, chosen, (np.asarray(chosen) + 1) % V)
    else:
        target = sometimes_right(rng, np.asarray(chosen), V)
    return {"probs": trial.tensor(probs), "target": ids(target), **options}


def _ordinary(trial: Trial) -> Arguments:
    n, rng = trial.draw(sizes(2)), np.random.default_rng(trial.draw(seeds()))
    middle = (rng.integers(6, 15, (n,)) + rng.uniform(0.3, 0.7, (n,))) / 15
    probs, chosen = rows(rng, middle, 3)
    return {"probs": trial.tensor(probs), "target": ids(sometimes_right(rng, chosen, 3))}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    probs = np.array([[0.875, 0.0], [0.25, 0.75], [0.375, 0.25]])
    a: Arguments = {"probs": trial.tensor(probs), "target": ids(np.array([0, 0, 0])), "num_bins": 4}
    probs[0, 0] = 0.5
    return a, {
        "probs": {**a, "probs": trial.tensor(probs)},
        "target": {**a, "target": ids(np.array([0, 1, 0]))},
        "num_bins": {**a, "num_bins": 1},
    }


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    probs, target = good["probs"], good["target"]
    both = ("probs", "target")
    yield InvalidCall("no sample", {"probs": probs[:0], "target": target[:0]}, both)
    yield InvalidCall("no class", {"probs": probs[:, :0], "target": target}, both)
    yield InvalidCall("too many axes", {"probs": probs, "target": target[:, None]}, both)
    yield InvalidCall("a probability above 1", {"probs": probs + 1.5, "target": target}, both[:1])
    yield InvalidCall("a probability below 0", {"probs": probs - 1.5, "target": target}, both[:1])


EXPECTED_CALIBRATION_ERROR = operation(
    "expected_calibration_error",
    sample=draw_calibration,
    sample_basic=_ordinary,
    also=(_by_means,),
    refuses=_refusals,
    argument_perturbations=_changes,
    sample_large=draw_calibration,
    structural_dtypes=("fp32", "bf16"),
    use_exact_oracle=False,
)


def _rng(trial: Trial) -> np.random.Generator:
    return np.random.default_rng(trial.draw(seeds()))


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return EXPECTED_CALIBRATION_ERROR.exact(trial, arguments, use_exact_oracle=False)[0]


def _agree(trial: Trial, arguments: Arguments) -> None:
    agrees(trial, EXPECTED_CALIBRATION_ERROR, arguments, trial.call(arguments), [_exact(trial, arguments)])


def _samples(trial: Trial, bins: int, *, least: int = 1) -> Arguments:
    """Draw samples on one axis, on edges where the dtype holds them."""
    rng, n, V = _rng(trial), trial.draw(sizes(least, 9)), trial.draw(choice(3, 2, 4))
    probs, chosen = rows(rng, confidences(rng, (n,), bins), V)
    return {"probs": trial.tensor(probs), "target": ids(sometimes_right(rng, chosen, V)), "num_bins": bins}


def _edges(trial: Trial) -> None:
    bins, n, rng = trial.draw(choice(2, 4, 1, 8)), trial.draw(sizes(1, 6)), _rng(trial)
    probs, chosen = rows(rng, rng.integers(0, bins + 1, n) / bins, 2)
    _agree(trial, {"probs": trial.tensor(probs), "target": ids(sometimes_right(rng, chosen, 2)), "num_bins": bins})


def _one_bin(trial: Trial) -> None:
    a = _samples(trial, 1)
    p = a["probs"].double().numpy()
    distance = abs(float((p.argmax(-1) == a["target"].numpy()).mean()) - float(p.max(-1).mean()))
    bound = _exact(trial, a).bound + 2.0**-46
    trial.assert_within_bound(trial.call(a).result, Reference(np.asarray(distance), bound), "the error in one bin")


def _certain(trial: Trial) -> None:
    n, V, rng = trial.draw(sizes(1, 9)), trial.draw(choice(3, 2, 5)), _rng(trial)
    chosen = rng.integers(0, V, n)
    wrong = rng.random(n) < trial.draw(choice(0.0, 0.4, 1.0))
    a = {"probs": trial.tensor(np.eye(V)[chosen]), "target": ids((chosen + wrong) % V)}
    bins = trial.draw(choice(None, 1, 2, 7, 10, 100))
    a |= {} if bins is None else {"num_bins": bins}
    law = Reference(np.asarray(wrong.mean()), _exact(trial, a).bound, scale=1.0, constant=True)
    trial.assert_within_bound(trial.call(a).result, law, "the error of who is certain")


def lowered(coarse: torch.Tensor, fine: torch.Tensor) -> torch.Tensor:
    """Return how far finer bins lower the error, or raise it above 1, in float64."""
    return torch.maximum(coarse.double() - fine.double(), fine.double() - 1).clamp(min=0)


def _refinement(trial: Trial) -> None:
    coarse = _samples(trial, trial.draw(choice(1, 2, 4)), least=2)
    fine = {**coarse, "num_bins": 2 * coarse["num_bins"]}
    of_coarse, of_fine = _exact(trial, coarse), _exact(trial, fine)
    a, b = trial.call(coarse), trial.call(fine)
    agrees(trial, EXPECTED_CALIBRATION_ERROR, fine, b, [of_fine])
    bound = (of_coarse.bound + of_fine.bound) * (1 + 2.0**-50)
    law = Reference(np.zeros(()), bound, scale=1.0, constant=True)
    trial.assert_within_bound(trial.observe(lowered, a.result, b.result), law, "by how much finer bins lower the error")


def _multiset(trial: Trial) -> None:
    one = _samples(trial, trial.draw(choice(4, 15, 2)), least=2)
    n = one["target"].numel()
    order = torch.as_tensor(_rng(trial).permutation(n))
    probs, target = one["probs"][order], one["target"][order]
    two = {**one, "probs": torch.stack([probs, probs]), "target": torch.stack([target, target])}
    a, b = trial.call(one), trial.call(two)
    of_one, of_two = _exact(trial, one), _exact(trial, two)
    agrees(trial, EXPECTED_CALIBRATION_ERROR, one, a, [of_one])
    equal(trial, a.result, b.result, of_one, of_two, "the error of samples in another order, each listed twice")


def _ties(trial: Trial) -> None:
    n, V, rng = trial.draw(sizes(1, 6)), trial.draw(choice(3, 2, 4)), _rng(trial)
    high, tied = confidences(rng, (n, 1), 4), rng.random((n, V)) < 0.6
    probs = np.where(tied | (np.arange(V) == rng.integers(0, V, (n, 1))), high, high / 2)
    a = {"probs": trial.tensor(probs), "target": ids(rng.integers(0, V, n)), "num_bins": 4}
    _agree(trial, a)


def _many(trial: Trial) -> None:
    n = trial.draw(choice(3000, 70000))
    rng, c = _rng(trial), trial.draw(choice(0.75, 1.0, 0.25))
    a = {"probs": trial.tensor(np.full((n, 1), c)), "target": ids(np.zeros(n)), "num_bins": trial.draw(choice(1, 15))}
    if rng.random() < 0.5:
        wrong = torch.as_tensor(rng.random(n) < 0.5)
        a["probs"] = torch.cat([a["probs"], torch.zeros_like(a["probs"])], 1)
        a["target"] = a["target"] + wrong
    result = trial.call(a).result
    reference = _exact(trial, a)
    finite(trial, result, "the error of many samples")
    trial.assert_within_bound(result, reference, "the error of many samples")


_LAWS: dict[str, Any] = {
    "edges": _edges,
    "one_bin": _one_bin,
    "certain": _certain,
    "refinement": _refinement,
    "multiset": _multiset,
    "ties": _ties,
}


CHECKS = (
    *(check(f"expected_calibration_error.{name}", body, dtypes=("fp32", "fp16")) for name, body in _LAWS.items()),
    check("expected_calibration_error.many", _many, effort=0.15),
)
