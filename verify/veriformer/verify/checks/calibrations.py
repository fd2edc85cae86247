"""Laws of the expected calibration error."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import equal, finite
from veriformer.verify.judge import Reference
from veriformer.verify.operations.calibration import EXPECTED_CALIBRATION_ERROR as ECE
from veriformer.verify.operations.calibration import confidences, rows, sometimes_right
from veriformer.verify.operations.losses import ids
from veriformer.verify.strategies import choice, seeds, sizes
from veriformer.verify.trial import Arguments, Trial


def _rng(trial: Trial) -> np.random.Generator:
    return np.random.default_rng(trial.draw(seeds()))


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return ECE.exact(trial, arguments, sharp=False)[0]


def _agree(trial: Trial, arguments: Arguments) -> None:
    agrees(trial, ECE, arguments, trial.call(arguments), [_exact(trial, arguments)])


def _samples(trial: Trial, bins: int, *, least: int = 1) -> Arguments:
    """Samples on one axis, on edges where the dtype holds them."""
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
    trial.judge(trial.call(a).result, Reference(np.asarray(distance), bound), "the error in one bin")


def _certain(trial: Trial) -> None:
    n, V, rng = trial.draw(sizes(1, 9)), trial.draw(choice(3, 2, 5)), _rng(trial)
    chosen = rng.integers(0, V, n)
    wrong = rng.random(n) < trial.draw(choice(0.0, 0.4, 1.0))
    a = {"probs": trial.tensor(np.eye(V)[chosen]), "target": ids((chosen + wrong) % V)}
    bins = trial.draw(choice(None, 1, 2, 7, 10, 100))
    a |= {} if bins is None else {"num_bins": bins}
    law = Reference(np.asarray(wrong.mean()), _exact(trial, a).bound, scale=1.0, constant=True)
    trial.judge(trial.call(a).result, law, "the error of who is certain")


def lowered(coarse: torch.Tensor, fine: torch.Tensor) -> torch.Tensor:
    """By how much finer bins lower the error, or raise it above 1, in float64."""
    return torch.maximum(coarse.double() - fine.double(), fine.double() - 1).clamp(min=0)


def _refinement(trial: Trial) -> None:
    coarse = _samples(trial, trial.draw(choice(1, 2, 4)), least=2)
    fine = {**coarse, "num_bins": 2 * coarse["num_bins"]}
    of_coarse, of_fine = _exact(trial, coarse), _exact(trial, fine)
    a, b = trial.call(coarse), trial.call(fine)
    agrees(trial, ECE, fine, b, [of_fine])
    bound = (of_coarse.bound + of_fine.bound) * (1 + 2.0**-50)
    law = Reference(np.zeros(()), bound, scale=1.0, constant=True)
    trial.judge(trial.observe(lowered, a.result, b.result), law, "by how much finer bins lower the error")


def _multiset(trial: Trial) -> None:
    one = _samples(trial, trial.draw(choice(4, 15, 2)), least=2)
    n = one["target"].numel()
    order = torch.as_tensor(_rng(trial).permutation(n))
    probs, target = one["probs"][order], one["target"][order]
    two = {**one, "probs": torch.stack([probs, probs]), "target": torch.stack([target, target])}
    a, b = trial.call(one), trial.call(two)
    of_one, of_two = _exact(trial, one), _exact(trial, two)
    agrees(trial, ECE, one, a, [of_one])
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
    trial.judge(result, reference, "the error of many samples")


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
