"""Laws of cross entropy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree, has_form
from veriformer.verify.laws.equality import assert_not_constant, constant, equal, slice_reference, slice_result, total
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.operations.scores.cross_entropy.record import CROSS_ENTROPY
from veriformer.verify.operations.scores.target_laws import draw_rows, interpolated, pieces
from veriformer.verify.operations.scores.targets import (
    IGNORE_INDEX,
    classes,
    draw_cross_entropy,
    ids,
    probabilities,
    with_ignored,
)
from veriformer.verify.strategies import choice, leading_shapes, sizes, values


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return CROSS_ENTROPY.exact(trial, arguments, use_exact_oracle=False)[0]


def _conservation(trial: Trial) -> None:
    arguments = draw_cross_entropy(trial)
    if arguments["target"].is_floating_point():
        arguments = {**arguments, "target": ids(np.zeros(arguments["logits"].shape[:-1]))}
    cotangent = draw_cotangent(trial, _exact(trial, arguments).exact.shape)
    gradient = trial.call(arguments, wrt=("logits",), cotangent=cotangent).gradient("logits")
    reference = CROSS_ENTROPY.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)["logits"]
    assert_not_constant(trial, gradient, reference, "gradient")
    law = total(0.0, reference.bound, -1)
    size = float(np.abs(reference.exact).sum(-1).max(initial=0.0))
    summed = Observation(gradient.value.double().sum(-1), f"{gradient.expression}.double().sum(-1)")
    trial.assert_within_bound(
        summed, Reference(law.exact, law.bound, scale=size, constant=True), "sum of a row's gradient"
    )


def _ignored(trial: Trial) -> None:
    rng, arguments = draw_rows(trial, least=2)
    n = arguments["target"].shape[0]
    ignored = rng.random(n) < 0.5
    ignored[rng.permutation(n)[:2]] = [True, False]
    target = ids(np.where(ignored, IGNORE_INDEX, arguments["target"].numpy()))
    options = {
        "reduction": trial.draw(choice("mean", "sum", "none")),
        "label_smoothing": trial.draw(choice(0.0, 0.25)),
    }
    other = 3.0 - 2.0 * arguments["logits"]
    if other.shape[-1] > 1 and trial.draw(
        choice(False, True)
    ):  # a class of no probability: what its loss would be is infinite
        other[:, trial.draw(choice(0, -1))] = -torch.inf
    other = torch.where(torch.as_tensor(ignored)[:, None], other, arguments["logits"])
    one = {**arguments, "target": target, **options}
    two = {**one, "logits": other}
    reference = _exact(trial, one)
    cotangent = draw_cotangent(trial, reference.exact.shape)
    a, b = (trial.call(x, wrt=("logits",), cotangent=cotangent) for x in (one, two))
    agrees(trial, CROSS_ENTROPY, one, a, [reference])
    equal(trial, a.result, b.result, reference, reference, "loss with other logits at ignored targets")
    gradients_agree(trial, b, CROSS_ENTROPY.exact_gradients(trial, two, cotangent, use_exact_oracle=False))


def _no_target(trial: Trial) -> None:
    lead, vocabulary = trial.draw(leading_shapes(2)), trial.draw(sizes())
    ignore_index = trial.draw(choice(IGNORE_INDEX, 0, -1))
    reduction = trial.draw(choice("mean", "sum", "none"))
    arguments = {
        "logits": trial.tensor(trial.draw(values()).array(*lead, vocabulary)),
        "target": ids(np.full(lead, ignore_index)),
        "ignore_index": ignore_index,
        "reduction": reduction,
        "label_smoothing": trial.draw(choice(0.0, 0.1)),
    }
    if reduction == "mean" and trial.claims.convention("cross_entropy.no_target") == "nan":
        loss = trial.call(arguments).result
        trial.assert_true(
            bool(loss.value.isnan().all()), "the loss is not NaN, as claimed", f"bool({loss.expression}.isnan().all())"
        )
        return
    zero = np.zeros(lead if reduction == "none" else ())
    cotangent = draw_cotangent(trial, zero.shape)
    outcome = trial.call(arguments, wrt=("logits",), cotangent=cotangent)
    trial.assert_within_bound(outcome.result, Reference(zero, zero, constant=True), "loss over no target")
    nothing = np.zeros((*lead, vocabulary))
    trial.assert_within_bound(
        outcome.gradient("logits"), Reference(nothing, nothing, constant=True), "gradient over no target"
    )


def summed(losses: torch.Tensor) -> torch.Tensor:
    """Return the sum of all entries in float64."""
    return losses.double().sum()


def scaled(loss: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Return a mean times its count in float64."""
    return loss.double() * count


def _times(reference: Reference, count: int) -> Reference:
    return Reference(reference.exact * count, reference.bound * count * (1 + 2.0**-50))


def _reductions(trial: Trial) -> None:
    arguments = dict(draw_cross_entropy(trial))
    results, exact = {}, {}
    for reduction in ("none", "sum", "mean"):
        arguments["reduction"] = reduction
        exact[reduction] = _exact(trial, arguments)
        results[reduction] = trial.call(arguments).result
    assert_not_constant(trial, results["none"], exact["none"], "losses")
    counted = arguments["target"] != arguments.get("ignore_index", IGNORE_INDEX)
    by_class = not arguments["target"].is_floating_point()
    count = int(counted.sum()) if by_class else exact["none"].exact.size
    added = Reference(exact["none"].exact.sum(), exact["none"].bound.sum() * (1 + 2.0**-50))
    every = trial.observe(summed, results["none"])
    equal(trial, every, results["sum"], added, exact["sum"], "the sum of the losses against reduction='sum'")
    mean = trial.observe(scaled, results["mean"], constant(torch.tensor(count)))
    equal(trial, mean, results["sum"], _times(exact["mean"], count), exact["sum"], "the mean times the count")


def _smoothing(trial: Trial) -> None:
    _, arguments = draw_rows(trial)
    alpha = trial.draw(choice(0.25, 0.1, 0.75))
    base = {**arguments, "reduction": trial.draw(choice("none", "mean", "sum"))}
    calls = {a: {**base, "label_smoothing": a} for a in (0.0, 1.0, alpha)}
    exact = {a: _exact(trial, call) for a, call in calls.items()}
    outcomes = {a: trial.call(call) for a, call in calls.items()}
    agrees(trial, CROSS_ENTROPY, calls[0.0], outcomes[0.0], [exact[0.0]])  # zeros are a mixture of zeros
    results = {a: outcome.result for a, outcome in outcomes.items()}
    mixed = trial.observe(interpolated, results[0.0], results[1.0], constant(torch.tensor(alpha, dtype=torch.float64)))
    both = exact[0.0].bound * (1 - alpha) + exact[1.0].bound * alpha
    size = np.abs(exact[0.0].exact) + np.abs(exact[1.0].exact)
    of_mixed = Reference(exact[alpha].exact, (both + 2.0**-50 * size) * (1 + 2.0**-50))
    assert_not_constant(trial, results[0.0], exact[0.0], "losses")
    equal(trial, results[alpha], mixed, exact[alpha], of_mixed, "the smoothed loss against its two parts")


def _one_hot(trial: Trial) -> None:
    _, arguments = draw_rows(trial)
    vocabulary = arguments["logits"].shape[-1]
    options = {
        "reduction": trial.draw(choice("mean", "sum", "none")),
        "label_smoothing": trial.draw(choice(0.0, 0.25)),
    }
    by_class = {**arguments, **options}
    hot = trial.tensor(np.eye(vocabulary)[arguments["target"].numpy()])
    by_mass = {**by_class, "target": hot}
    of_class, of_mass = _exact(trial, by_class), _exact(trial, by_mass)
    cotangent = draw_cotangent(trial, of_class.exact.shape)
    a, b = (trial.call(x, wrt=("logits",), cotangent=cotangent) for x in (by_class, by_mass))
    assert_not_constant(trial, a.result, of_class, "loss")
    equal(trial, a.result, b.result, of_class, of_mass, "loss of classes against loss of one-hot probabilities")
    gradients = [
        CROSS_ENTROPY.exact_gradients(trial, x, cotangent, use_exact_oracle=False)["logits"]
        for x in (by_class, by_mass)
    ]
    equal(trial, a.gradient("logits"), b.gradient("logits"), gradients[0], gradients[1], "their gradients")


def added(*parts: torch.Tensor) -> torch.Tensor:
    """Return the sum of several results in float64."""
    return torch.stack([part.double() for part in parts]).sum(0)


def _partition(trial: Trial) -> None:
    rng, arguments = draw_rows(trial, least=2)
    target = with_ignored(rng, arguments["target"].numpy(), IGNORE_INDEX)
    whole = {**arguments, "target": ids(target), "reduction": "sum", "label_smoothing": float(rng.choice([0.0, 0.1]))}
    reference = _exact(trial, whole)
    cotangent = trial.tensor(1.5)
    full = trial.call(whole, wrt=("logits",), cotangent=cotangent)
    agrees(trial, CROSS_ENTROPY, whole, full, [reference])
    gradient = CROSS_ENTROPY.exact_gradients(trial, whole, cotangent, use_exact_oracle=False)["logits"]
    results, bounds = [], []
    for rows in pieces(rng, len(target)):
        part = {**whole, "logits": whole["logits"][rows], "target": whole["target"][rows]}
        outcome = trial.call(part, wrt=("logits",), cotangent=cotangent)
        results.append(outcome.result)
        bounds.append(_exact(trial, part).bound)
        one = slice_reference(gradient, (rows,))
        equal(
            trial,
            slice_result(full.gradient("logits"), (rows,)),
            outcome.gradient("logits"),
            one,
            one,
            "gradient of a part",
        )
    of_parts = Reference(reference.exact, np.asarray(sum(bounds)) * (1 + 2.0**-50) + 2.0**-50 * np.abs(reference.exact))
    equal(trial, full.result, trial.observe(added, *results), reference, of_parts, "the loss of all against its parts")


def _range(trial: Trial) -> None:
    many = 400 if trial.dtype_name == "fp16" else 90  # whose sum leaves fp16, though their mean does not
    n, vocabulary = trial.draw(choice(2, 1, many)), trial.draw(sizes(2, 4))
    rng = trial.draw(values()).rng
    top = {"fp16": 2.0**11, "bf16": 2.0**14}.get(trial.dtype_name, 2.0**20)
    level = top * rng.choice([1.0, -1.0])
    logits = level + top * 2.0**-5 * rng.integers(-16, 17, (n, vocabulary))
    arguments = {
        "logits": trial.tensor(logits),
        "target": ids(classes(rng, (n,), vocabulary)),
        "reduction": trial.draw(choice("mean", "none")),
    }
    judge_with_gradients(trial, CROSS_ENTROPY, arguments)
    trial.effective.append(True)


def _hidden_classes(trial: Trial) -> None:
    rng, arguments = draw_rows(trial)
    n, vocabulary = arguments["logits"].shape
    hidden = rng.random((n, vocabulary)) < 0.5
    target = arguments["target"].numpy()
    hidden[np.arange(n), target] = False
    masses = np.where(hidden, 0.0, probabilities(rng, (n, vocabulary)) + 2.0**-6)
    logits = torch.where(torch.as_tensor(hidden), -torch.inf, arguments["logits"])
    impossible = bool(vocabulary > 1 and rng.random() < 0.25)
    reduction = trial.draw(choice("mean", "sum", "none"))
    for given in (ids(target), trial.tensor(np.minimum(masses, 1.0))):
        if impossible:
            _infinite(trial, logits.clone(), given, target[0])
        else:
            judge_with_gradients(trial, CROSS_ENTROPY, {"logits": logits, "target": given, "reduction": reduction})


def _infinite(trial: Trial, logits: torch.Tensor, given: torch.Tensor, hit: int) -> None:
    """Check an infinite loss: a target of probability 0, or another such class under label smoothing."""
    vocabulary, smoothed = logits.shape[1], trial.option("label_smoothing", None, 0.1)
    impossible = (hit + 1) % vocabulary if smoothed else hit
    logits[0, impossible] = -torch.inf
    logits[0, (impossible + 1) % vocabulary] = 0.0
    loss = trial.call({"logits": logits, "target": given, "reduction": "sum", **smoothed}).result
    has_form(trial, loss, (), trial.dtype)
    e = loss.expression
    trial.assert_true(bool(loss.value == torch.inf), "the loss of an impossible class is not inf", f"bool({e} == inf)")


_LAWS: dict[str, Any] = {
    "conservation": _conservation,
    "ignored": _ignored,
    "reductions": _reductions,
    "smoothing": _smoothing,
    "one_hot": _one_hot,
    "partition": _partition,
    "range": _range,
    "hidden_classes": _hidden_classes,
}


CHECKS = (
    *(check(f"cross_entropy.{name}", body) for name, body in _LAWS.items()),
    check("cross_entropy.no_target", _no_target, convention="cross_entropy.no_target"),
)
