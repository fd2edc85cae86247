"""Label smoothing: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import has_form
from veriformer.verify.laws.equality import assert_not_constant, constant, equal, total
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores.target_laws import interpolated
from veriformer.verify.operations.scores.targets import classes, ids
from veriformer.verify.strategies import choice, leading_shapes, seeds, sizes


def _blended(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return (1 − α) y + α u with the uniform row u = 1 / V formed first."""
    hit = (a["target"][..., None] == np.arange(a["num_classes"])).astype(np.float64)
    alpha, u = xp.asarray(a["alpha"]), xp.asarray(1.0) / a["num_classes"]
    return [(1 - alpha) * xp.asarray(hit) + alpha * u]


def draw_smoothing(trial: Trial, least_rank: int = 0) -> Arguments:
    """Draw targets of rank up to 3, from one class up, with no, some and nothing but smoothing."""
    large = trial.rows(number=(1, 2000))
    lead, V = (large[:-1], large[-1]) if large else (trial.draw(leading_shapes(3)), trial.draw(choice(3, 2, 5, 7, 1)))
    lead = lead if len(lead) >= least_rank else (2,) * least_rank
    rng = np.random.default_rng(trial.draw(seeds()))
    alpha = trial.draw(choice(0.1, 0.0, 1.0, 0.375, 0.5, 0.9, 1 / 3))
    return {"target": ids(classes(rng, lead, V)), "num_classes": V, "alpha": alpha}


def _ordinary(trial: Trial) -> Arguments:
    return {"target": ids(np.array([[2, 0, 1], [1, 1, 2]])), "num_classes": 3, "alpha": 0.25}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    V = trial.draw(sizes(2))
    target = np.arange(V)
    a: Arguments = {"target": ids(target), "num_classes": V, "alpha": 0.25}
    return a, {"target": {**a, "target": ids((target + 1) % V)}, "alpha": {**a, "alpha": 0.5}}


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    for entry in (good["num_classes"], -1):
        target = good["target"].clone()
        target[-1, -1] = entry
        yield InvalidCall(f"class {entry}", {**good, "target": target}, ("target",))
    yield InvalidCall("no classes", {**good, "num_classes": 0}, ("num_classes", "target"))


SMOOTH_LABELS = operation(
    "smooth_labels",
    sample=draw_smoothing,
    sample_basic=_ordinary,
    also=(_blended,),
    refuses=_refusals,
    argument_perturbations=_changes,
    sample_large=draw_smoothing,
    structural_dtypes=("fp32", "bf16"),
    use_exact_oracle=False,
)


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return SMOOTH_LABELS.exact(trial, arguments, use_exact_oracle=False)[0]


def _simplex(trial: Trial) -> None:
    arguments = draw_smoothing(trial)
    reference, y = _exact(trial, arguments), trial.call(arguments).result
    assert_not_constant(trial, y, reference, "smoothed labels")
    e = y.expression
    trial.assert_true(bool((y.value >= 0).all()), "a share is negative or NaN", f"bool(({e} >= 0).all())")
    rows = Observation(y.value.double().sum(-1), f"{e}.double().sum(-1)")
    trial.assert_within_bound(rows, total(1.0, reference.bound, -1), "the sum of a row")


def _mixture(trial: Trial) -> None:
    base = draw_smoothing(trial)
    alpha = trial.draw(choice(0.25, 0.1, 0.75))
    calls = {a: {**base, "alpha": a} for a in (0.0, 1.0, alpha)}
    exact = {a: _exact(trial, call) for a, call in calls.items()}
    results = {a: trial.call(call).result for a, call in calls.items()}
    share = constant(torch.tensor(alpha, dtype=torch.float64))
    mixed = trial.observe(interpolated, results[0.0], results[1.0], share)
    both = (1 - alpha) * exact[0.0].bound + alpha * exact[1.0].bound + 2.0**-50
    assert_not_constant(trial, results[0.0], exact[0.0], "one-hot labels")
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
