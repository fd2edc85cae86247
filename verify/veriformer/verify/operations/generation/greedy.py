"""Greedy choice: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.generation.greedy import greedy
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, has_form
from veriformer.verify.laws.family import check, settles_ties
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.generation.filter_laws import distinct_scores, draw_rng, tied_scores
from veriformer.verify.operations.generation.filters import bad_scores, draw_logits, long_rows, ordinary_scores
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, sizes, values


def _greedy(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [np.asarray(greedy(a["logits"]))]


def _greedy_changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    z = np.array([0.5, 2.0, -1.0]) + trial.draw(values(("integers",))).array(1)
    return {"logits": trial.tensor(z)}, {"logits": {"logits": trial.tensor(np.roll(z, 1))}}


GREEDY = operation(
    "greedy",
    sample=lambda trial: {"logits": draw_logits(trial, near=True)},
    sample_basic=lambda trial: {"logits": ordinary_scores(trial)},
    formulas=(_greedy,),
    refuses=bad_scores,
    argument_perturbations=_greedy_changes,
    sample_large=lambda trial: {"logits": long_rows(trial, 2**18)},  # a choice of k may be quadratic, and right
    result_dtype=lambda trial, arguments, part: torch.int64,
    structural_dtypes=("fp32", "bf16"),
    use_exact_oracle=False,
)


def _chosen(trial: Trial, z: torch.Tensor) -> Observation:
    y = trial.call({"logits": z}).result
    has_form(trial, y, tuple(z.shape[:-1]), torch.int64)
    return y


def _first(trial: Trial) -> None:
    m, rng = trial.draw(sizes(2, 7)), draw_rng(trial)
    z = rng.choice([-np.inf, 0.0, 1.0, 1.0], (3, m))
    z[0] = trial.draw(choice(0.0, -2.0))
    z[:, -1] = np.maximum(z[:, -1], -1.0)
    z[2] = np.minimum(z[2], rng.choice([0.0, -0.0], m))  # zeros of either sign, which are equal
    a = {"logits": trial.tensor(z)}
    agrees(trial, GREEDY, a, trial.call(a), GREEDY.exact(trial, a, use_exact_oracle=False))


def _same_choice(trial: Trial, a: Observation, b: Observation, moved: torch.Tensor, said: str, message: str) -> None:
    trial.assert_true(torch.equal(moved, b.value), message, f"torch.equal({said}, {b.expression})")


def _monotone_greedy(trial: Trial) -> None:
    z = tied_scores(trial) if trial.draw(choice(True, False)) else distinct_scores(trial)
    a, b = _chosen(trial, z), _chosen(trial, 2 * z + 1)
    highest = z.amax(-1)
    best = bool((z.gather(-1, a.value.clamp(0, z.shape[-1] - 1)[:, None])[:, 0] == highest).all())
    said = f"bool(({literal(z)}.gather(-1, {a.expression}[:, None])[:, 0] == {literal(highest)}).all())"
    trial.assert_true(best, "a higher score is passed over", said)
    _same_choice(trial, a, b, a.value, a.expression, "scores twice as far apart are chosen otherwise")


def _moving_greedy(trial: Trial) -> None:
    z = distinct_scores(trial)
    order = torch.as_tensor(draw_rng(trial).permutation(z.shape[-1]))
    a, b = _chosen(trial, z), _chosen(trial, z[:, order])
    inside = bool(((b.value >= 0) & (b.value < z.shape[-1])).all())
    said = f"bool((({b.expression} >= 0) & ({b.expression} < {z.shape[-1]})).all())"
    trial.assert_true(inside, "what is chosen is no token", said)
    moved = Observation(order[b.value], f"{literal(order)}[{b.expression}]")
    _same_choice(trial, b, a, moved.value, moved.expression, "the choice does not move with its token")


CHECKS = (
    check("greedy.first", _first, dtypes=("fp32", "bf16"), applies=settles_ties),
    check("greedy.monotone", _monotone_greedy, dtypes=("fp32", "bf16")),
    check("greedy.permutation", _moving_greedy, dtypes=("fp32", "bf16")),
)
