"""The loss of masked language models: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.equality import assert_not_constant, constant, equal, total
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores import loss_forms
from veriformer.verify.operations.scores.target_laws import draw_rows, pieces
from veriformer.verify.operations.scores.targets import (
    IGNORE_INDEX,
    bad_targets,
    changed_targets,
    classes,
    draw_perplexity,
    ids,
    long_rows,
    ordinary_rows,
)
from veriformer.verify.strategies import choice, leading_shapes, sizes, values


def labelled(a: Arguments) -> Arguments:
    """Return the call with its target renamed to labels."""
    return {"labels" if key == "target" else key: value for key, value in a.items()}


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in a.items() if key not in ("logits", "labels")}


def _by_total(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [loss_forms.loss(xp, a["logits"], a["labels"], **_options(a))]


def _vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"logits": loss_forms.loss_gradient(xp, a["logits"], a["labels"], g, **_options(a))}


def _vjp_by_total(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"logits": loss_forms.loss_gradient(xp, a["logits"], a["labels"], g, kept=True, **_options(a))}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a, changed = changed_targets(trial)
    return labelled(a), {("labels" if what == "target" else what): labelled(b) for what, b in changed.items()}


MASKED_LM_LOSS = operation(
    "masked_lm_loss",
    sample=lambda trial: labelled(draw_perplexity(trial)),
    sample_basic=lambda trial: labelled(ordinary_rows(trial)),
    also=(_by_total,),
    also_gradients=(_vjp_by_chain, _vjp_by_total),
    refuses=bad_targets,
    argument_perturbations=_changes,
    sample_large=lambda trial: labelled(long_rows(trial)),
    structural_dtypes=("fp32", "bf16"),
)


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return MASKED_LM_LOSS.exact(trial, arguments, use_exact_oracle=False)[0]


def _masked_rows(trial: Trial) -> tuple[np.random.Generator, Arguments, np.ndarray]:
    """Draw rows of which some are masked and some are visible, and which."""
    rng, drawn = draw_rows(trial, least=2)
    n = drawn["target"].shape[0]
    visible = rng.random(n) < 0.5
    visible[rng.permutation(n)[:2]] = [True, False]
    labels = ids(np.where(visible, IGNORE_INDEX, drawn["target"].numpy()))
    return rng, {"logits": drawn["logits"], "labels": labels}, visible


def _visible(trial: Trial) -> None:
    _, whole, visible = _masked_rows(trial)
    kept = torch.as_tensor(~visible)
    other = {**whole, "logits": torch.where(kept[:, None], whole["logits"], 3.0 - 2.0 * whole["logits"])}
    rest = {"logits": whole["logits"][kept], "labels": whole["labels"][kept]}
    cotangent, reference = trial.tensor(-1.5), _exact(trial, whole)
    a, b, c = (trial.call(x, wrt=("logits",), cotangent=cotangent) for x in (whole, rest, other))
    agrees(trial, MASKED_LM_LOSS, whole, a, [reference])
    equal(trial, a.result, b.result, reference, _exact(trial, rest), "the loss without the visible positions")
    equal(trial, a.result, c.result, reference, reference, "the loss with other logits at visible positions")
    gradients_agree(trial, c, MASKED_LM_LOSS.exact_gradients(trial, other, cotangent, use_exact_oracle=False))


def averaged(counts: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
    """Return Σ count · loss / Σ count over parts, in float64."""
    return (counts * torch.stack([part.double() for part in parts])).sum() / counts.sum()


def _partition(trial: Trial) -> None:
    rng, whole, visible = _masked_rows(trial)
    parts = [rows for rows in pieces(rng, len(visible)) if not visible[rows].all()]
    calls = [{key: value[rows] for key, value in whole.items()} for rows in parts]
    counts = np.array([float((~visible[rows]).sum()) for rows in parts])
    reference, exact = _exact(trial, whole), [_exact(trial, call) for call in calls]
    full, results = trial.call(whole), [trial.call(call).result for call in calls]
    agrees(trial, MASKED_LM_LOSS, whole, full, [reference])
    mean = trial.observe(averaged, constant(torch.as_tensor(counts)), *results)
    bound = sum(n * x.bound for n, x in zip(counts, exact, strict=True)) / counts.sum()
    of_mean = Reference(reference.exact, np.asarray(bound + 2.0**-46 * np.abs(reference.exact)))
    equal(trial, full.result, mean, reference, of_mean, "the loss of all against its parts, by their counts")


def _positions(trial: Trial) -> None:
    rng, whole, visible = _masked_rows(trial)
    order = torch.as_tensor(rng.permutation(len(visible)))
    moved = {key: value[order] for key, value in whole.items()}
    a, b = trial.call(whole), trial.call(moved)
    of_a, of_b = _exact(trial, whole), _exact(trial, moved)
    agrees(trial, MASKED_LM_LOSS, whole, a, [of_a])
    equal(trial, a.result, b.result, of_a, of_b, "the loss of positions in another order")


def _uniform(trial: Trial) -> None:
    lead, V = trial.draw(leading_shapes()), trial.draw(choice(3, 2, 5, 100))
    kind = trial.draw(values(("integers", "gaussian")))
    logits = np.broadcast_to(kind.array(*lead, 1), (*lead, V))
    a = {"logits": trial.tensor(logits), "labels": ids(classes(kind.rng, lead, V))}
    law = Reference(np.asarray(np.log(V)), _exact(trial, a).bound + 2.0**-50, constant=True)
    trial.assert_within_bound(trial.call(a).result, law, "the loss of uniform logits")


def _conservation(trial: Trial) -> None:
    a = labelled(draw_perplexity(trial))
    cotangent = draw_cotangent(trial, ())
    gradient = trial.call(a, wrt=("logits",), cotangent=cotangent).gradient("logits")
    reference = MASKED_LM_LOSS.exact_gradients(trial, a, cotangent, use_exact_oracle=False)["logits"]
    assert_not_constant(trial, gradient, reference, "gradient")
    law = total(0.0, reference.bound, -1)
    size = float(np.abs(reference.exact).sum(-1).max(initial=0.0))
    summed = Observation(gradient.value.double().sum(-1), f"{gradient.expression}.double().sum(-1)")
    trial.assert_within_bound(
        summed, Reference(law.exact, law.bound, scale=size, constant=True), "sum of a row's gradient"
    )


def _range(trial: Trial) -> None:
    n, V = trial.draw(choice(2, 1, 90)), trial.draw(sizes(2, 4))
    rng = trial.draw(values()).rng
    top = {"fp16": 2.0**11, "bf16": 2.0**14}.get(trial.dtype_name, 2.0**20)
    logits = top * rng.choice([1.0, -1.0]) + top * 2.0**-5 * rng.integers(-16, 17, (n, V))
    a = {"logits": trial.tensor(logits), "labels": ids(classes(rng, (n,), V))}
    judge_with_gradients(trial, MASKED_LM_LOSS, a)
    trial.effective.append(True)


def _no_target(trial: Trial) -> None:
    lead, V = trial.draw(leading_shapes(2)), trial.draw(sizes())
    index = trial.draw(choice(IGNORE_INDEX, 0, -1))
    a = {
        "logits": trial.tensor(trial.draw(values()).array(*lead, V)),
        "labels": ids(np.full(lead, index)),
        "ignore_index": index,
    }
    if trial.claims.convention("cross_entropy.no_target") == "nan":
        loss = trial.call(a).result
        said = f"bool({loss.expression}.isnan().all())"
        trial.assert_true(bool(loss.value.isnan().all()), "the loss is not NaN, as claimed", said)
        return
    outcome = trial.call(a, wrt=("logits",), cotangent=trial.tensor(2.0))
    zero, nothing = np.zeros(()), np.zeros((*lead, V))
    trial.assert_within_bound(outcome.result, Reference(zero, zero, constant=True), "loss over no masked position")
    trial.assert_within_bound(outcome.gradient("logits"), Reference(nothing, nothing, constant=True), "its gradient")


_LAWS: dict[str, Any] = {
    "visible": _visible,
    "partition": _partition,
    "positions": _positions,
    "uniform": _uniform,
    "conservation": _conservation,
}


CHECKS = (
    *(check(f"masked_lm_loss.{name}", body, dtypes=("fp32", "fp16")) for name, body in _LAWS.items()),
    check("masked_lm_loss.range", _range),
    check("masked_lm_loss.no_target", _no_target, convention="cross_entropy.no_target"),
)
