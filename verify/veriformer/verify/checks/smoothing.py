"""Laws of label smoothing."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.checks.agreement import has_form
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import alive, constant, equal, total
from veriformer.verify.checks.losses import interpolated
from veriformer.verify.judge import Reference
from veriformer.verify.operations.losses import ids
from veriformer.verify.operations.smoothing import SMOOTH_LABELS, draw_smoothing
from veriformer.verify.strategies import choice, seeds
from veriformer.verify.trial import Arguments, Observation, Trial


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return SMOOTH_LABELS.exact(trial, arguments, sharp=False)[0]


def _simplex(trial: Trial) -> None:
    arguments = draw_smoothing(trial)
    reference, y = _exact(trial, arguments), trial.call(arguments).result
    alive(trial, y, reference, "smoothed labels")
    e = y.expression
    trial.require(bool((y.value >= 0).all()), "a share is negative or NaN", f"bool(({e} >= 0).all())")
    rows = Observation(y.value.double().sum(-1), f"{e}.double().sum(-1)")
    trial.judge(rows, total(1.0, reference.bound, -1), "the sum of a row")


def _mixture(trial: Trial) -> None:
    base = draw_smoothing(trial)
    alpha = trial.draw(choice(0.25, 0.1, 0.75))
    calls = {a: {**base, "alpha": a} for a in (0.0, 1.0, alpha)}
    exact = {a: _exact(trial, call) for a, call in calls.items()}
    results = {a: trial.call(call).result for a, call in calls.items()}
    share = constant(torch.tensor(alpha, dtype=torch.float64))
    mixed = trial.observe(interpolated, results[0.0], results[1.0], share)
    both = (1 - alpha) * exact[0.0].bound + alpha * exact[1.0].bound + 2.0**-50
    alive(trial, results[0.0], exact[0.0], "one-hot labels")
    of_mixed = Reference(exact[alpha].exact, both)
    equal(trial, results[alpha], mixed, exact[alpha], of_mixed, "smoothed labels against their two parts")


def _relabelling(trial: Trial) -> None:
    base = draw_smoothing(trial)
    order = np.random.default_rng(trial.draw(seeds())).permutation(base["num_classes"])
    renamed = {**base, "target": ids(np.argsort(order)[base["target"].numpy()])}
    a, b = trial.call(base).result, trial.call(renamed).result
    has_form(trial, a, (*base["target"].shape, base["num_classes"]), trial.dtype)
    moved = Observation(a.value[..., order.tolist()], f"{a.expression}[..., {order.tolist()!r}]")
    reference = _exact(trial, renamed)
    equal(trial, moved, b, reference, reference, "labels of renamed classes")


_LAWS = {"simplex": _simplex, "mixture": _mixture, "relabelling": _relabelling}

CHECKS = tuple(check(f"smooth_labels.{name}", body, dtypes=("fp32", "fp16")) for name, body in _LAWS.items())
