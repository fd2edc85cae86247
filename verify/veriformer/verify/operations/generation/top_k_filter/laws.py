"""Laws of the top-k filter."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.family import check
from veriformer.verify.operations.generation.filter_laws import (
    distinct_scores,
    draw_rng,
    filtered,
    keeps_same_set,
    keeps_within,
    permutation_law,
    tied_scores,
    untouched_law,
)
from veriformer.verify.operations.generation.filters import draw_logits
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice


def _k(trial: Trial, z: torch.Tensor) -> dict[str, Any]:
    return {"k": int(draw_rng(trial).integers(1, z.shape[-1] + 1))}


def _many_ties(trial: Trial) -> torch.Tensor:
    """Draw a row of one score, and one of two: more of each than a half can count."""
    m = trial.draw(choice(1000, 2500))
    return trial.tensor(draw_rng(trial).integers(0, [[1], [2]], (2, m)))


def _count(trial: Trial) -> None:
    many = trial.draw(choice(False, True)) and not trial.claims.deviates("choice.ties")
    z = _many_ties(trial) if many else tied_scores(trial)
    z = torch.where(z == 0, trial.tensor(draw_rng(trial).choice([0.0, -0.0], tuple(z.shape))), z)  # which are equal
    k = _k(trial, z)["k"]
    y = filtered(trial, {"logits": z, "k": k})
    e, kept = y.expression, y.value > -torch.inf
    trial.assert_true(
        bool((kept.sum(-1) == k).all()), f"not {k} scores survive", f"bool((({e} > -inf).sum(-1) == {k}).all())"
    )
    given = literal(z)
    fine = bool((z.masked_fill(~kept, torch.inf).amin(-1) >= z.masked_fill(kept, -torch.inf).amax(-1)).all())
    said = f"{given}.masked_fill({e} == -inf, inf).amin(-1) >= {given}.masked_fill({e} > -inf, -inf).amax(-1)"
    trial.assert_true(fine, "a score that is dropped exceeds one that is kept", f"bool(({said}).all())")


def _nested_k(trial: Trial) -> None:
    z = draw_logits(trial, least_rank=1)
    k = int(draw_rng(trial).integers(1, max(2, z.shape[-1])))
    more = min(k + 1, z.shape[-1])
    a, b = (filtered(trial, {"logits": z, "k": n}) for n in (k, more))
    keeps_within(trial, a, b, f"{more} keep less than {k} do")
    again = filtered(trial, {"logits": b.value.detach(), "k": k})
    keeps_same_set(trial, again, a, None, f"filtering by {more} and then by {k} is not filtering by {k}")


def _monotone_k(trial: Trial) -> None:
    z = tied_scores(trial) if trial.draw(choice(True, False)) else distinct_scores(trial)
    given = _k(trial, z)
    a, b = (filtered(trial, {"logits": x, **given}) for x in (z, 2 * z + 1))
    keeps_same_set(trial, a, b, None, "scores twice as far apart are not kept alike")


_LAWS: dict[str, Any] = {
    "untouched": untouched_law(_k),
    "count": _count,
    "nested": _nested_k,
    "monotone": _monotone_k,
    "permutation": permutation_law(_k),
}

CHECKS = tuple(check(f"top_k_filter.{name}", body, dtypes=("fp32", "bf16")) for name, body in _LAWS.items())
