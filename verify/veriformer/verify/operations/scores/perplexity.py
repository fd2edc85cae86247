"""Perplexity: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import Vjp
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree, has_form
from veriformer.verify.laws.equality import between, constant, equal, finite
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores.target_laws import draw_rows, pieces
from veriformer.verify.operations.scores.targets import (
    IGNORE_INDEX,
    bad_targets,
    changed_targets,
    classes,
    draw_perplexity,
    ids,
    long_rows,
    loss_by_total,
    loss_vjp_by_chain,
    loss_vjp_by_total,
    ordinary_rows,
)
from veriformer.verify.strategies import choice, leading_shapes, sizes, values, widths


def _perplexity_by_total(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [xp.exp(loss_by_total(xp, a)[0])]


def _of_perplexity(vjp: Vjp) -> Vjp:
    return lambda xp, a, g: vjp(xp, a, g * _perplexity_by_total(xp, a)[0])


PERPLEXITY = operation(
    "perplexity",
    sample=draw_perplexity,
    sample_basic=ordinary_rows,
    also=(_perplexity_by_total,),
    also_gradients=(_of_perplexity(loss_vjp_by_chain), _of_perplexity(loss_vjp_by_total)),
    refuses=bad_targets,
    argument_perturbations=changed_targets,
    sample_large=long_rows,
)


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return PERPLEXITY.exact(trial, arguments, use_exact_oracle=False)[0]


def _between(trial: Trial) -> None:
    _, arguments = draw_rows(trial)
    reference = _exact(trial, arguments)
    logits = arguments["logits"].double()
    width = logits.amax(-1) - logits.amin(-1)
    others = logits.shape[-1] - 1
    low, high = (torch.log1p(others * (sign * width).exp()).mean().exp().numpy() for sign in (-1.0, 1.0))
    bound = reference.bound + 2.0**-46 * high
    between(trial, trial.call(arguments).result, low, high, bound, "how far it is outside the least and the most")


def _uniform(trial: Trial) -> None:
    lead, vocabulary = trial.draw(leading_shapes()), trial.draw(choice(3, 2, 5, 1, 100))
    kind = trial.draw(values(("integers", "gaussian")))
    logits = np.broadcast_to(kind.array(*lead, 1), (*lead, vocabulary))
    arguments = {"logits": trial.tensor(logits), "target": ids(classes(kind.rng, lead, vocabulary))}
    bound = _exact(trial, arguments).bound
    law = Reference(np.asarray(float(vocabulary)), bound, constant=True)
    trial.assert_within_bound(trial.call(arguments).result, law, "perplexity of uniform logits")


def _counted(trial: Trial) -> None:
    rng, arguments = draw_rows(trial, least=2)
    n = arguments["target"].shape[0]
    ignored = rng.random(n) < 0.5
    ignored[rng.permutation(n)[:2]] = [True, False]
    target = np.where(ignored, IGNORE_INDEX, arguments["target"].numpy())
    kept = torch.as_tensor(~ignored)
    whole = {"logits": arguments["logits"], "target": ids(target)}
    rest = {"logits": arguments["logits"][kept], "target": arguments["target"][kept]}
    other = {**whole, "logits": torch.where(kept[:, None], whole["logits"], 3.0 - 2.0 * whole["logits"])}
    cotangent = trial.tensor(-1.5)
    reference = _exact(trial, whole)
    a, b, c = (trial.call(x, wrt=("logits",), cotangent=cotangent) for x in (whole, rest, other))
    agrees(trial, PERPLEXITY, whole, a, [reference])
    equal(trial, a.result, b.result, reference, _exact(trial, rest), "perplexity without the ignored rows")
    equal(trial, a.result, c.result, reference, reference, "perplexity with other logits at ignored rows")
    gradients_agree(trial, c, PERPLEXITY.exact_gradients(trial, other, cotangent, use_exact_oracle=False))


def weighted(counts: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
    """Return Σ count · log perplexity over parts, in float64."""
    return (counts * torch.stack([part.double() for part in parts]).log()).sum()


def _log_bound(reference: Reference) -> float:
    """Return the error bound of the logarithm of a result."""
    margin = float(reference.exact - reference.bound)
    return float(reference.bound) / margin * (1 + 2.0**-40) + 2.0**-48 if margin > 0 else np.inf


def _partition(trial: Trial) -> None:
    rng, arguments = draw_rows(trial, least=2)
    n = arguments["target"].shape[0]
    whole = {"logits": arguments["logits"], "target": arguments["target"]}
    parts = [rows for rows in pieces(rng, n) if rows.stop > rows.start]
    calls = [{key: value[rows] for key, value in whole.items()} for rows in parts]
    counts = torch.tensor([float(rows.stop - rows.start) for rows in parts], dtype=torch.float64)
    reference = _exact(trial, whole)
    result = trial.call(whole).result
    agrees_log = n * float(np.log(reference.exact))
    one = trial.observe(weighted, constant(torch.tensor([float(n)], dtype=torch.float64)), result)
    of_one = Reference(np.asarray(agrees_log), np.asarray(n * _log_bound(reference)))
    several = trial.observe(weighted, constant(counts), *[trial.call(call).result for call in calls])
    bounds = [float(count) * _log_bound(_exact(trial, call)) for count, call in zip(counts, calls, strict=True)]
    of_several = Reference(of_one.exact, np.asarray(sum(bounds)))
    trial.assert_within_bound(one, of_one, "logarithm of the perplexity times the count")
    equal(trial, one, several, of_one, of_several, "the log-perplexity of all against its parts, by their counts")


def _no_target(trial: Trial) -> None:
    lead, vocabulary = trial.draw(leading_shapes(2)), trial.draw(sizes())
    ignore_index = trial.draw(choice(IGNORE_INDEX, 0, -1))
    arguments = {
        "logits": trial.tensor(trial.draw(values()).array(*lead, vocabulary)),
        "target": ids(np.full(lead, ignore_index)),
        "ignore_index": ignore_index,
    }
    if trial.claims.convention("cross_entropy.no_target") == "nan":
        result = trial.call(arguments).result
        trial.assert_true(
            bool(result.value.isnan().all()),
            "the perplexity is not NaN, as claimed",
            f"bool({result.expression}.isnan().all())",
        )
        return
    outcome = trial.call(arguments, wrt=("logits",), cotangent=trial.tensor(2.0))
    trial.assert_within_bound(
        outcome.result, Reference(np.asarray(1.0), np.asarray(0.0), constant=True), "perplexity over no target"
    )
    nothing = np.zeros((*lead, vocabulary))
    trial.assert_within_bound(
        outcome.gradient("logits"), Reference(nothing, nothing, constant=True), "gradient over no target"
    )


_LEVELS = {"fp16": 64.0, "bf16": 128.0, "fp32": 1024.0, "fp64": 4096.0}


def _range(trial: Trial) -> None:
    rng, vocabulary = trial.draw(values()).rng, trial.draw(widths())
    n = trial.draw(choice(2, 1, 7, *([30000] if trial.dtype_name == "fp16" else [])))
    level = _LEVELS[trial.dtype_name] * rng.choice([1.0, -1.0])
    step = 2.0 if trial.dtype_name == "fp16" else 24.0  # nothing caps a perplexity of e^72
    arguments = {
        "logits": trial.tensor(level + step * rng.integers(0, 4, (n, vocabulary))),
        "target": ids(classes(rng, (n,), vocabulary)),
    }
    result = trial.call(arguments).result
    has_form(trial, result, (), trial.dtype)
    finite(trial, result, "the perplexity")
    judge_with_gradients(trial, PERPLEXITY, arguments)
    trial.effective.append(True)


_LAWS: dict[str, Any] = {
    "between": _between,
    "uniform": _uniform,
    "counted": _counted,
    "partition": _partition,
    "range": _range,
}


CHECKS = (
    *(check(f"perplexity.{name}", body) for name, body in _LAWS.items()),
    check("perplexity.no_target", _no_target, convention="cross_entropy.no_target"),
)
