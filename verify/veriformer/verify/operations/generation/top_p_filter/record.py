"""The top-p filter as a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import RunningError
from veriformer.spec.generation.top_p_filter import top_p_filter
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.generation.filters import (
    bad_scores,
    changes_of_filter,
    draw_logits,
    draw_p,
    ordinary_scores,
    undecided,
)


def _top_p(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return the kept logits, with an infinite bound where the mass before a token meets p within rounding."""
    filtered = top_p_filter(xp, a["logits"], a["p"])
    if isinstance(xp, RunningError) and a["p"] < 1:
        filtered.error = np.where(undecided(xp, a["logits"], a["p"]), np.inf, filtered.error)
    return [filtered]


def _draw_p(trial: Trial) -> Arguments:
    return {"logits": draw_logits(trial), "p": draw_p(trial)}


TOP_P_FILTER = operation(
    "top_p_filter",
    sample=_draw_p,
    sample_basic=lambda trial: {"logits": ordinary_scores(trial), "p": 0.75},
    formulas=(_top_p,),
    refuses=bad_scores,
    argument_perturbations=changes_of_filter("p", 0.25, 0.999),
    structural_dtypes=("fp32", "bf16"),
    use_exact_oracle=False,
)
